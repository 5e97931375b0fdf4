#!/bin/sh
# apply.sh adopt renames the live tables into the databases of Vitess' shards, apply.sh undo
# takes them back. apply.sh vitess makes the keyspace and starts its vttablets; vtctldclient
# has to reach vtctld (VTCTLDCLIENT_SERVER), and vttablets.sh says what else it takes.
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
	vtctldclient CreateKeyspace --durability-policy=none shop
	vtctldclient ApplyVSchema --vschema-file vschema.json shop
	sh vttablets.sh
	until [ "$(vtctldclient GetTablets --keyspace shop | wc -l)" -ge 4 ]; do sleep 1; done
	vtctldclient TabletExternallyReparented "$CELL-101"
	vtctldclient TabletExternallyReparented "$CELL-102"
	vtctldclient TabletExternallyReparented "$CELL-103"
	vtctldclient TabletExternallyReparented "$CELL-104"
	;;
*)
	echo 'Give one of adopt, undo and vitess.' >&2
	exit 2
	;;
esac
