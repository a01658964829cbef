"""What notebooks and scripts see of Assay, by the module assay.py: lazy tables, gold sets, figures. It asks the rooms
below and decides nothing; only tasks.run changes anything, by the manager's actions.
"""
