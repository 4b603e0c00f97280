"""A broker, a catalog server and JVMs that stay up between test runs: `make services`, `make services-stop`.

A keeper process has four parts, each a process group of its own: the broker, the server, the catalog's JVM
for tests that speak to it directly, and the JVM of a Spark driver. A test run takes a lease on them and finds
them as if they were new: topics are deleted, the server is one that no run has used, Spark begins another
context. Only the JVMs are old, with their classes loaded and compiled.

`keeper` starts parts and starts them again, `part` is one of them, `lease` is a test run's side of it; the
modules that are named after a part are its processes.
"""
