#!/bin/sh
# Makes sure that the Debian packages of packages.txt are there: installs the missing ones when root, and
# otherwise prints the one line that does, and fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v dpkg-query >/dev/null 2>&1 || exit 0 # another distribution: CMake will name what is missing

missing=$(awk '
  FILENAME == "-" { if ($1 == "installed") have[$2] = 1; next }
  NF && $1 !~ /^#/ && !have[$1] { print $1 }
' - "$here/packages.txt" <<LIST
$(dpkg-query -W -f '${db:Status-Status} ${Package}\n')
LIST
)
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086 # a list of words
set -- $missing
if [ "$(id -u)" -eq 0 ]; then
  echo "installing: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
else
  echo "Heddle's build needs packages that are not installed. Please run:" >&2
  echo "  sudo apt-get install --no-install-recommends $*" >&2
  exit 1
fi
