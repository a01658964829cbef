"""Licences of texts: one spelling for each, and which of them let the text leave."""

import re

# Licences that allow passing the text on, by SPDX name without its version. Those with NC or ND are left out:
# a person must decide whether they do.
FREE_LICENCES = ("CC0", "CC-BY", "CC-BY-SA", "PDDL", "ODC-BY", "ODBL", "PUBLIC-DOMAIN")


def licence_key(licence: str) -> str:
    """One spelling for each licence: `CC BY 4.0`, `cc-by-4.0` and `CC_BY_4.0` are `CC-BY-4.0`."""
    return re.sub(r"[\s_-]+", "-", licence.strip().upper())


def is_free(licence: str) -> bool:
    """Whether a licence, of whatever version, is known to let the text leave."""
    return re.sub(r"-\d+(\.\d+)*$", "", licence_key(licence)) in FREE_LICENCES
