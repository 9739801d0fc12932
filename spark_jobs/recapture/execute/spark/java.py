"""Options of Java, which starts and distributes, but computes no rows."""

QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:+IgnoreUnrecognizedVMOptions "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options without the optimising compiler, which took half of the CPU of a start, and without the verification of
Spark's classes.
"""
SMALL_AND_QUIET = "-XX:+UseSerialGC -Dlog4j2.level=OFF"
"""Options of the driver of a command."""
DRIVER, EXECUTOR = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"
"""Settings of Spark that have options. Those of a cluster's `extraJavaOptions` come after them, and win."""
