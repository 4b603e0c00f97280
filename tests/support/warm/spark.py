"""A test run's Spark sessions in the JVM of the warm services."""

import os
from typing import Any, cast

from pyspark import SparkContext, java_gateway

from tests.support.warm.lease import Lease, forget_objects


def use_kept_jvm(lease: Lease) -> None:
    """Have the Spark contexts that this process makes in the kept JVM, which has none yet.

    The connections to it end with this process. To close them before would wait for threads of py4j that read
    from them until then.
    """
    address = lease.address("spark")
    # Only for the call: engines that a test starts would find it in their environment.
    variables = {"PYSPARK_GATEWAY_PORT": str(address["port"]), "PYSPARK_GATEWAY_SECRET": address["token"]}
    os.environ |= variables
    try:
        gateway = cast(Any, java_gateway).launch_gateway()
    finally:
        for name in variables:
            del os.environ[name]
    stop_context(gateway.jvm)
    forget_objects(gateway)
    SparkContext._ensure_initialized(gateway=gateway)


def stop_context(jvm: Any) -> None:
    """End the context of a run that was killed, its streaming queries included."""
    context = getattr(getattr(jvm, "org.apache.spark.SparkContext$"), "MODULE$").getActive()
    if context.isDefined():
        context.get().stop()
    session = jvm.org.apache.spark.sql.classic.SparkSession
    session.clearDefaultSession()
    session.clearActiveSession()
