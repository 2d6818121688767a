# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by the scripts beside it: how they print messages, and how they become root.
# shellcheck shell=bash

report() { printf '%s: %s\n' "$TASK" "$*"; }

refuse() {
  printf '%s: %s\n' "$TASK" "$*" >&2
  exit 1
}

# Reports the minutes that a task took against its limit. Over it is no failure: other work may slow the machine.
report_minutes() {
  local minutes=$((($1 + 59) / 60)) limit=$2
  if ((minutes > limit)); then
    report "OVER THE LIMIT: $minutes minutes, of at most $limit"
  else
    report "$minutes minutes, of at most $limit"
  fi
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether this machine's packages are Debian's: `dpkg` and `apt-get` on Debian or Ubuntu.
on_debian_or_ubuntu() {
  [[ "$(distribution)" =~ ^(debian|ubuntu)$ ]] && have apt-get && have dpkg-query
}

distribution() { (. /etc/os-release 2>/dev/null && printf '%s' "${ID:-unknown}") || printf 'unknown'; }

release_codename() { (. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}"); }

can_become_root() { [[ "$(id -u)" == 0 ]] || have sudo; }

# Runs a command as root: directly, or through sudo.
as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}
