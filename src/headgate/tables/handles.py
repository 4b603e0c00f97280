"""Java's functional interfaces without a callback into Python, which would need an open port here."""

from typing import Any


def array(gateway: Any, kind: Any, *items: Any) -> Any:
    """A Java array of `kind`."""
    found = gateway.new_array(kind, len(items))
    for index, item in enumerate(items):
        found[index] = item
    return found


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
