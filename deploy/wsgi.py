"""The WSGI entry point: `gunicorn deploy.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from corpora.system import UMASK

# Before the settings, which create the data folder.
os.umask(UMASK)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
application = get_wsgi_application()
