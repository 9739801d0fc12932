"""The plugin of an Airflow that has the package on its path. Where it is installed, Airflow finds the plugin itself."""

from importlib.metadata import entry_points

if "recapture" not in entry_points(group="airflow.plugins").names:
    from recapture_airflow.plugin import RecapturePlugin as RecapturePlugin
