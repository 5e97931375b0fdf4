#!/bin/sh
# apply.sh vitess makes the keyspace and starts its vttablets; VTCTLD is the address of vtctld,
# host:port, and vttablets.sh says what else it takes.
set -eu
cd "$(dirname "$0")"
case "${1-}" in
vitess)
	ctl() { vtctldclient --server "$VTCTLD" "$@"; }
	ctl CreateKeyspace --durability-policy=none shop
	ctl ApplyVSchema --vschema-file vschema.json shop
	sh vttablets.sh
	until [ "$(ctl GetTablets --keyspace shop | wc -l)" -ge 2 ]; do sleep 1; done
	ctl TabletExternallyReparented "$CELL-101"
	ctl TabletExternallyReparented "$CELL-102"
	;;
*)
	echo 'Give one of: vitess' >&2
	exit 2
	;;
esac
