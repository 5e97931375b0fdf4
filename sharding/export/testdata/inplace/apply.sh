#!/bin/sh
# apply.sh vitess creates the keyspace and starts its vttablets; VTCTLD is the address of vtctld,
# host:port, and vttablets.sh lists the other variables.
set -eu
cd "$(dirname "$0")"
case "${1-}" in
vitess)
	ctl() { vtctldclient --server "$VTCTLD" "$@"; }
	registered() { [ "$(ctl GetTablets --keyspace shop | wc -l)" -ge 2 ]; }
	# A primary takes part in workflows, as MoveTables is one, only a moment after its first start.
	ready() { ctl GetWorkflows shop; }
	await() {
		tries=60
		until "$@" >/dev/null 2>&1; do
			tries=$((tries - 1))
			[ $tries -gt 0 ] || { echo "The vttablets are not $1 after a minute; see vttablet.*.log" >&2; "$@"; exit 1; }
			sleep 1
		done
	}
	ctl CreateKeyspace --durability-policy=none shop
	ctl ApplyVSchema --vschema-file vschema.json shop
	sh vttablets.sh
	await registered
	ctl TabletExternallyReparented "$CELL-101"
	ctl TabletExternallyReparented "$CELL-102"
	await ready
	;;
*)
	echo 'Pass one of: vitess' >&2
	exit 2
	;;
esac
