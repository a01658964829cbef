"""Which of two systems people prefer: opening such tasks, answering, and what nobody learns."""
