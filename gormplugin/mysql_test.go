package gormplugin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// On MySQL gorm writes DO NOTHING as `id` = `id`, which leaves the sharding key,
// and an id that carries its slot, as they are.
func TestDoNothingOfMySQLLeavesTheKeyAsItIs(t *testing.T) {
	db, mock := mockedShards(t)
	skip := clause.OnConflict{DoNothing: true}
	byID := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoNothing: true}
	const (
		order = "INSERT INTO `orders_1` (`id`,`user_id`,`note`) VALUES (?,?,?) ON DUPLICATE KEY UPDATE `id`=`id`"
		sale  = "INSERT INTO `sales_1` (`id`,`user_id`,`note`) VALUES (?,?,?) ON DUPLICATE KEY UPDATE `id`=`id`"
	)
	for _, c := range []struct {
		text   string
		create func() *gorm.DB
	}{
		{order, func() *gorm.DB { return db.Clauses(skip).Create(&Order{ID: 5}) }},
		{order, func() *gorm.DB { return db.Clauses(byID).Create(&Order{ID: 5}) }},
		{order, func() *gorm.DB { return db.Clauses(skip).CreateInBatches(&[]Order{{ID: 5}}, 1) }},
		{sale, func() *gorm.DB { return db.Clauses(skip).Create(&Sale{ID: 5, UserID: 3}) }},
		{sale, func() *gorm.DB { return db.Clauses(byID).Create(&Sale{ID: 5, UserID: 3}) }},
	} {
		mock.ExpectExec(c.text).WillReturnResult(sqlmock.NewResult(0, 0))
		if err := c.create().Error; err != nil {
			t.Error(err)
		}
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

func TestAnOrderByATextNamesTheUsersColumn(t *testing.T) {
	db, mock := mockedShards(t)
	mock.MatchExpectationsInOrder(false)
	for i := range 2 {
		mock.ExpectQuery(fmt.Sprintf("SELECT user_id,note AS `shardid_1` FROM `orders_%d` AS `orders` ORDER BY note", i)).
			WillReturnRows(sqlmock.NewRows([]string{"user_id", "shardid_1"}).AddRow(i, "a").AddRow(i, "b"))
	}
	all := db.WithContext(sharding.AllShards(t.Context()))
	err := all.Table("orders").Select("user_id").Order("note").Find(&[]map[string]any{}).Error
	if !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "; note is a text") {
		t.Error(err)
	}
}

// mockedShards returns a *gorm.DB of the MySQL dialect over tables in a mock.
// MariaDB skips what MySQL executes here, and the other way round.
func TestCodeInACommentForSomeServersIsRefusedOnAShardedTable(t *testing.T) {
	db, mock := mockedShards(t)
	hinted := db.WithContext(sharding.OnKey(t.Context(), "orders", 5))
	for text, send := range map[string]func(query string) *gorm.DB{
		"UPDATE orders SET note = 'u' /*!80000 WHERE 1 = 1 */, id = 6":                         func(q string) *gorm.DB { return hinted.Exec(q) },
		"INSERT INTO orders (id) VALUES (5) /*M!100100 ON DUPLICATE KEY UPDATE x = (y */, (6)": func(q string) *gorm.DB { return hinted.Exec(q) },
		"SELECT /*!80000 1 FROM x -- */ * FROM orders":                                         func(q string) *gorm.DB { return db.Raw(q).Scan(&[]Order{}) },
		"id = 5 /*!80000 OR 1 = 1 */":                                                          func(q string) *gorm.DB { return db.Where(q).Find(&[]Order{}) },
	} {
		var refused *sharding.RouteError
		if err := send(text).Error; !errors.As(err, &refused) {
			t.Errorf("%s: %v", text, err)
		}
	}
	mock.ExpectExec("UPDATE `orders_1` SET note = '/*!80000 */'").WillReturnResult(sqlmock.NewResult(0, 0))
	if err := hinted.Exec("UPDATE orders SET note = '/*!80000 */'").Error; err != nil {
		t.Error(err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

func mockedShards(t *testing.T) (*gorm.DB, sqlmock.Sqlmock) {
	t.Helper()
	shard, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db": shard},
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: spread(t, "orders_%d")},
		sharding.Table{
			Name: "sales", Key: "user_id", Rule: sharding.Mod(2), Map: spread(t, "sales_%d"),
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(2), From: 1}},
		})
	if err != nil {
		t.Fatal(err)
	}
	db, _ := mocked(t, gormplugin.Config{Router: router})
	return db, mock
}

func spread(t *testing.T, pattern string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread([]string{"db"}, 2, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
