package gormplugin_test

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

// With a counting generator the arguments of every INSERT are known beforehand,
// and neither Use nor Create sends anything else.
func TestGeneratedIdsCanBeExpectedWithSqlmock(t *testing.T) {
	conn, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: conn, SkipInitializeWithVersion: true}), &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(41, 1)}})); err != nil {
		t.Fatal(err)
	}
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO `people`").WithArgs(41, "a", 42, "b").WillReturnResult(sqlmock.NewResult(41, 2))
	mock.ExpectCommit()

	people := []Person{{Name: "a"}, {Name: "b"}}
	if err := db.Create(&people).Error; err != nil {
		t.Fatal(err)
	}
	if people[0].ID != 41 || people[1].ID != 42 {
		t.Errorf("%+v", people)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}
