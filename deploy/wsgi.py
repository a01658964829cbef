"""The WSGI entry point, for example for `gunicorn deploy.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from corpora.system import UMASK

# The umask must be set before the settings are loaded, because they create the data folder.
os.umask(UMASK)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
application = get_wsgi_application()
