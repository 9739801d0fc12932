"""Where rows are computed: in processes of this machine, or in Spark."""
