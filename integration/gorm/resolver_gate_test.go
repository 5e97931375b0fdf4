// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"errors"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
)

// resolvedProcess is a program that reads from a replica of the source without
// replication, so that a result shows which server was read.
func (d *gateDepot) resolvedProcess(t *testing.T, replica *sql.DB) *gorm.DB {
	t.Helper()
	db := d.process(t)
	if err := db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{mysql.New(mysql.Config{Conn: replica})}})); err != nil {
		t.Fatal(err)
	}
	return db
}

// noteOf reads the first parcel.
func noteOf(db *gorm.DB) string {
	var p gateParcel
	if err := db.Where("id = 1").Take(&p).Error; err != nil {
		return err.Error()
	}
	return p.Note
}

func noteInTransaction(db *gorm.DB) (note string) {
	if err := db.Transaction(func(tx *gorm.DB) error { note = noteOf(tx); return nil }); err != nil {
		return err.Error()
	}
	return note
}

// A table that is being migrated is read on its source and never on a replica,
// because the replica may still have the table under its old name after the switch.
func TestDBResolverDoesNotChooseForTablesThatAreMigrated(t *testing.T) {
	d := newGateDepot(t, server.RunMariaDB(t), server.RunMariaDB(t))
	replica := server.RunMariaDB(t).Open(t, "depot_replica")
	database.Exec(t, replica, "CREATE TABLE parcels (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, note VARCHAR(100) NOT NULL)")
	database.Exec(t, replica, "CREATE TABLE depots (id BIGINT NOT NULL PRIMARY KEY)")
	database.Exec(t, replica, "INSERT INTO parcels (note) VALUES ('of the replica')")
	database.Exec(t, replica, "INSERT INTO depots VALUES (7)")
	reader, writer := d.resolvedProcess(t, replica), d.resolvedProcess(t, replica)
	var depots int64
	if err := reader.Table("depots").Count(&depots).Error; err != nil || depots != 1 {
		t.Errorf("another table is not read on the replica: %d rows, %v", depots, err)
	}
	d.wantNotes(t, "before the switch", "old", reader, writer)
	made := gateParcel{Note: "made"}
	if err := errors.Join(writer.Create(&made).Error, reader.Take(&gateParcel{}, made.ID).Error); err != nil {
		t.Error(err)
	}
	d.cutover(t)
	if tx := writer.Model(&gateParcel{ID: 1}).Update("note", "of a shard"); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
	}
	d.wantNotes(t, "after the switch", "of a shard", reader, writer)
	if got := d.onShards(t, "parcels", "note"); got[1] != "of a shard" || got[made.ID] != "made" {
		t.Errorf("the shards hold %v", got)
	}
	d.rollback(t)
	d.wantNotes(t, "after the rollback", "of a shard", reader, writer)
}

// wantNotes reads the first parcel in every way that dbresolver affects.
func (d *gateDepot) wantNotes(t *testing.T, when, want string, processes ...*gorm.DB) {
	t.Helper()
	for i, db := range processes {
		for how, note := range map[string]string{
			"plain": noteOf(db), "dbresolver.Read": noteOf(db.Clauses(dbresolver.Read)), "dbresolver.Write": noteOf(db.Clauses(dbresolver.Write)),
			"FOR UPDATE": noteOf(db.Clauses(clause.Locking{Strength: "UPDATE"})), "a transaction": noteInTransaction(db),
		} {
			if note != want {
				t.Errorf("%s process %d, %s: %q, not %q", when, i, how, note, want)
			}
		}
	}
}
