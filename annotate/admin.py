"""Where Django looks for the admin's pages; they are in annotate/pages/admin/."""

import annotate.pages.admin  # noqa: F401
