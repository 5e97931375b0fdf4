#!/bin/sh
# apply.sh adopt renames the live tables into the databases of Vitess' shards.
# apply.sh undo takes them back.
# apply.sh vitess makes the keyspace and starts its vttablets; VTCTLD is the address of vtctld,
# host:port, and vttablets.sh says what else it takes.
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
	ctl CreateKeyspace --durability-policy=none shop
	ctl ApplyVSchema --vschema-file vschema.json shop
	sh vttablets.sh
	until [ "$(ctl GetTablets --keyspace shop | wc -l)" -ge 4 ]; do sleep 1; done
	ctl TabletExternallyReparented "$CELL-101"
	ctl TabletExternallyReparented "$CELL-102"
	ctl TabletExternallyReparented "$CELL-103"
	ctl TabletExternallyReparented "$CELL-104"
	;;
*)
	echo 'Give one of: adopt undo vitess' >&2
	exit 2
	;;
esac
