#!/usr/bin/env bash
# Says what `make setup` needs and does not find. Changes nothing.
set -u
missing=0
say() { printf 'headgate: %s\n' "$1" >&2; missing=1; }

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
  say "Python 3.11 or newer is missing: install it, or set PYTHON to its path."
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  say "Python 3.11 or newer is needed, '$python' is $("$python" -V 2>&1 | cut -d' ' -f2): install it, or set PYTHON to its path."
fi

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
if ! command -v "$java" >/dev/null 2>&1; then
  say "a JDK 17 or newer is missing: install one (for instance OpenJDK 17), or set JAVA_HOME."
else
  major=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
  if [ "${major:-0}" -lt 17 ]; then
    say "a JDK 17 or newer is needed, '$java' is version ${major:-unknown}: install one, or set JAVA_HOME."
  fi
fi

command -v mvn >/dev/null 2>&1 || say "Apache Maven is missing: install it so that 'mvn' is on the PATH."

exit "$missing"
