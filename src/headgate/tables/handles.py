"""What py4j does not give by itself: Java's functions without a callback into Python, which would need an
open port here, and a method that has a namesake."""

from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX


def array(gateway: Any, kind: Any, *items: Any) -> Any:
    """A Java array of `kind`."""
    found = gateway.new_array(kind, len(items))
    for index, item in enumerate(items):
        found[index] = item
    return found


def table_cache(gateway: Any) -> Any:
    """Iceberg's SparkTableCache, by name of the method that gives it.

    Its objects have a method `get` too. Asked what `get` is, py4j looks at the first that Java lists, and
    Java's order changes from one start to the next.
    """
    cache = f"{STATIC_PREFIX}org.apache.iceberg.spark.SparkTableCache"
    return JavaMember("get", None, cache, gateway._gateway_client)()


def function(gateway: Any, owner: Any, declared_in: str, method: str, takes: str, gives: str) -> Any:
    """`owner`'s method as a java.util.function.Function; the names are those of the declaration."""
    java = gateway.jvm.java.lang
    kind = java.invoke.MethodType.methodType(
        java.Class.forName(gives), array(gateway, java.Class, java.Class.forName(takes))
    )
    lookup = java.invoke.MethodHandles.publicLookup()
    handle = lookup.findVirtual(java.Class.forName(declared_in), method, kind).bindTo(owner)
    return java.invoke.MethodHandleProxies.asInterfaceInstance(
        java.Class.forName("java.util.function.Function"), handle
    )


def delete_loader(gateway: Any, table: Any) -> Any:
    """Iceberg's reader of a table's delete files."""
    return gateway.jvm.org.apache.iceberg.data.BaseDeleteLoader(
        function(
            gateway,
            table.io(),
            "org.apache.iceberg.io.FileIO",
            "newInputFile",
            "org.apache.iceberg.DeleteFile",
            "org.apache.iceberg.io.InputFile",
        )
    )
