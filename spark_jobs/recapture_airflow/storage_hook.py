"""The type of connection that Airflow's form offers for the storage account."""

from airflow.sdk import BaseHook


class StorageHook(BaseHook):
    """Hook that gives the type of connection its name. The tasks read the connection: see `storage_connection`."""

    conn_name_attr = "connection"
    default_conn_name = "recapture_storage"
    conn_type = "recapture_storage"
    hook_name = "Recapture storage"
