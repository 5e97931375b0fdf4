#!/bin/sh
# apply.sh adopt renames the live tables into the databases of Vitess' shards.
# apply.sh undo reverts the renames.
# apply.sh vitess creates the keyspace and starts its vttablets; VTCTLD is the address of vtctld,
# host:port, and vttablets.sh lists the other variables.
set -eu
cd "$(dirname "$0")"
: "${EAST_CNF:?names an option file of the mysql client for east, with host, port, user and password}"
: "${WEST_CNF:?names an option file of the mysql client for west, with host, port, user and password}"
run() { "${MYSQL:-mysql}" --defaults-extra-file="$1" <"$2"; }
case "${1-}" in
adopt)
	run "$EAST_CNF" adopt.east.sql || {
		exit 1
	}
	run "$WEST_CNF" adopt.west.sql || {
		run "$EAST_CNF" adopt.east.undo.sql
		exit 1
	}
	;;
undo)
	run "$EAST_CNF" adopt.east.undo.sql
	run "$WEST_CNF" adopt.west.undo.sql
	;;
vitess)
	ctl() { vtctldclient --server "$VTCTLD" "$@"; }
	registered() { [ "$(ctl GetTablets --keyspace shop | wc -l)" -ge 4 ]; }
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
	ctl TabletExternallyReparented "$CELL-103"
	ctl TabletExternallyReparented "$CELL-104"
	await ready
	;;
*)
	echo 'Pass one of: adopt undo vitess' >&2
	exit 2
	;;
esac
