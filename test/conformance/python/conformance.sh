#!/usr/bin/env bash
# Proves that the unmodified Python package felix-client works against this tree's felixd.
#
#   FELIX_CONFORMANCE_VENV    virtual environment to use and keep (default: a temporary one)
#   FELIX_CONFORMANCE_FELIXD  felixd binary to test (default: build ./cmd/felixd)
#   FELIX_CONFORMANCE_ROUNDS  how often to run every scenario (default: 1)
#   FELIX_CONFORMANCE_OPERATIONS, FELIX_CONFORMANCE_QUEUE_RECORDS, FELIX_CONFORMANCE_KILLS
#                             operations of the cache campaign, records of the queue campaign, and brokers that each
#                             of them kills (default: 3000, 1500 and 3)
#   PYTHON                    interpreter for the environment, 3.9 or newer (default: python3)
#
# Further arguments go to run.py. Exit code 0: everything passed, or PyPI is out of reach (and a line says so).
set -euo pipefail

readonly package=felix-client
readonly pinned=0.6.2
readonly ready_seconds=30
readonly stop_seconds=30 # longer than the default drain of felixd

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=$(mktemp -d)
broker=
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'conformance: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

kill_broker() {
  if [[ -n $broker ]]; then
    kill -KILL "$broker" 2>/dev/null || true
  fi
}

trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# out_of_reach FILE: whether pip's output speaks of the network rather than of the package.
out_of_reach() {
  grep -qiE 'retrying|connection|name resolution|timed out|timeout|proxy|unreachable|could not fetch' "$1"
}

# install VENV VERSION: 0 installed, 3 index out of reach; anything else ends the run.
install() {
  local venv=$1 version=$2 log=$work/pip.log
  if [[ $(installed_version "$venv") == "$version" ]]; then
    return 0
  fi
  if "$venv/bin/python" -m pip install --quiet --retries 1 --timeout 20 --only-binary :all: \
    "$package==$version" >"$log" 2>&1; then
    return 0
  fi
  if out_of_reach "$log"; then
    return 3
  fi
  cat "$log" >&2
  die "pip cannot install $package==$version"
}

installed_version() {
  "$1/bin/python" -c "import importlib.metadata as m; print(m.version('$package'))" 2>/dev/null || true
}

# newest VENV: the newest version the index serves, or nothing.
newest() {
  "$1/bin/python" -m pip index versions --retries 1 --timeout 20 "$package" 2>/dev/null |
    sed -n "1s/^$package (\(.*\))\$/\1/p" || true
}

start_broker() {
  local data=$work/data
  # Retention removes whole segments: small ones, so that it has something to remove.
  FELIX_DURABLE_SEGMENT_BYTES=1048576 FELIX_DURABLE_RETENTION_INTERVAL_SECONDS=1 \
    "$felixd" dev --data-dir "$data" --listen 127.0.0.1:0 --http 127.0.0.1:0 --api 127.0.0.1:0 \
    >"$work/felixd.log" 2>&1 &
  broker=$!
  dev_json=$data/dev.json
}

# stop_broker: ask it to end and insist on a clean exit.
stop_broker() {
  local status=0 waited=0
  kill -TERM "$broker" 2>/dev/null || true
  while kill -0 "$broker" 2>/dev/null; do
    if ((waited >= stop_seconds * 10)); then
      show_log
      die "felixd did not end within $stop_seconds s of SIGTERM"
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  wait "$broker" || status=$?
  broker=
  if ((status != 0)); then
    show_log
    die "felixd ended with exit code $status after SIGTERM, want 0"
  fi
}

show_log() {
  say "last lines of felixd:" >&2
  tail -n 60 "$work/felixd.log" >&2
}

# run_suite VENV ARGUMENTS...: one broker, one run of the suite; the suite's exit code. In a subshell, so that the
# broker ends with it whatever happens.
run_suite() (
  venv=$1 status=0
  shift
  trap kill_broker EXIT
  start_broker
  # The two faces of the client side by side: each waits for round trips most of its time.
  surface async "$@" >"$work/async.out" 2>&1 &
  local background=$!
  surface sync "$@" >"$work/sync.out" 2>&1 || status=$?
  wait "$background" || status=$?
  grep -hvE '^[0-9]+ passed, [0-9]+ failed$' "$work/sync.out" "$work/async.out" || true
  if ((status != 0)); then
    show_log
  fi
  stop_broker
  cat "$work/sync.out" "$work/async.out" |
    awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 } END { printf "%d passed, %d failed\n", passed, failed }'
  exit "$status"
)

# surface NAME ARGUMENTS...: the suite on one face of the client.
surface() {
  local name=$1
  shift
  (cd "$here" && "$venv/bin/python" run.py --dev-json "$dev_json" --wait "$ready_seconds" --surface "$name" \
    --rounds "${FELIX_CONFORMANCE_ROUNDS:-1}" --felixd "$felixd" \
    --operations "${FELIX_CONFORMANCE_OPERATIONS:-3000}" --queue-records "${FELIX_CONFORMANCE_QUEUE_RECORDS:-1500}" \
    --kills "${FELIX_CONFORMANCE_KILLS:-3}" "$@")
}

# try_newest VENV ARGUMENTS...: what the newest version does is a report, never a failure.
try_newest() {
  local version
  version=$(newest "$1")
  shift
  case $version in
    "") say "the newest version of $package is unknown, the index did not say" ;;
    "$pinned") say "$pinned is the newest version of $package" ;;
    *)
      say "the newest version of $package is $version, running it as a report"
      if run_newest "$version" "$@" 2>&1 | sed 's/^/  newest: /'; then
        say "$package $version passed"
      else
        say "$package $version FAILED (reported, does not count)"
      fi
      ;;
  esac
}

run_newest() {
  local version=$1 venv=$work/newest
  shift
  "$python" -m venv "$venv" || return 1
  install "$venv" "$version" || return 1
  run_suite "$venv" "$@" || return 1
}

main() {
  (cd "$here" && "$python" -m unittest discover --quiet --start-directory suite --top-level-directory .) ||
    die "the suite's own tests fail"

  felixd=${FELIX_CONFORMANCE_FELIXD:-}
  if [[ -z $felixd ]]; then
    felixd=$work/felixd
    (cd "$root" && go build -o "$felixd" ./cmd/felixd) || die "felixd does not build"
  fi

  local venv=${FELIX_CONFORMANCE_VENV:-$work/venv} status=0
  [[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
  install "$venv" "$pinned" || status=$?
  if ((status == 3)); then
    say "PyPI is out of reach, foreign client not run"
    echo "0 passed, 0 failed"
    exit 0
  fi

  run_suite "$venv" "$@" | tee "$work/pinned.out" || die "$package $pinned failed"
  try_newest "$venv" "$@"
  tail -n 1 "$work/pinned.out"
}

main "$@"
