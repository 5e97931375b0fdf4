// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	gormtests "gorm.io/gorm/utils/tests" // the models of gorm's own tests
)

// program is a use of gorm that the plugin must not change.
type program struct {
	name string
	run  func(*play)
}

// who returns a user with n of each has-many association.
func who(name string, n int) *gormtests.User {
	u := &gormtests.User{Name: name, Age: 18}
	if n == 0 {
		return u
	}
	u.Account = gormtests.Account{Number: name + "_account"}
	u.Company = gormtests.Company{Name: name + "_company"}
	u.Manager = &gormtests.User{Name: name + "_manager"}
	u.NamedPet = nil
	for i := range n {
		of := fmt.Sprintf("%s_%d", name, i)
		u.Pets = append(u.Pets, &gormtests.Pet{Name: of + "_pet", Toy: gormtests.Toy{Name: of + "_pet_toy"}})
		u.Toys = append(u.Toys, gormtests.Toy{Name: of + "_toy"})
		u.Tools = append(u.Tools, gormtests.Tools{Name: of + "_tool"})
		u.Team = append(u.Team, gormtests.User{Name: of + "_team"})
		u.Languages = append(u.Languages, gormtests.Language{Code: of + "_lang", Name: of})
		u.Friends = append(u.Friends, &gormtests.User{Name: of + "_friend"})
	}
	return u
}

// byKey orders rows by their creation. Without it a database may return them in any order, which
// may change between reads.
func byKey(db *gorm.DB) *gorm.DB {
	return db.Order(clause.OrderByColumn{Column: clause.PrimaryColumn})
}

// inOrder is byKey for gorm's generic calls.
func inOrder(b gorm.PreloadBuilder) error {
	b.Order(clause.OrderByColumn{Column: clause.PrimaryColumn})
	return nil
}

var programs = []program{
	{"create with every association", func(p *play) {
		u := who("u", 2)
		p.note(p.Create(u), u)
		var found gormtests.User
		p.note(p.Preload(clause.Associations, byKey).Preload("Pets.Toy").First(&found, u.ID), found)
	}},
	{"create a slice with associations", func(p *play) {
		us := []*gormtests.User{who("a", 1), who("b", 2), who("c", 0)}
		p.note(p.Create(&us), us)
	}},
	{"create structs, arrays and one by one", func(p *play) {
		us := []gormtests.User{*who("a", 0), *who("b", 1)}
		arr := [2]*gormtests.User{who("c", 0), who("d", 0)}
		p.note(p.Create(&us), us, p.Create(&arr), arr[0], arr[1])
	}},
	{"create in batches", func(p *play) {
		us := []gormtests.User{*who("a", 1), *who("b", 0), *who("c", 1), *who("d", 0), *who("e", 2)}
		p.note(p.CreateInBatches(&us, 2), us)
		more := []*gormtests.User{who("f", 0), who("g", 0), who("h", 0)}
		p.note(p.Session(&gorm.Session{CreateBatchSize: 2}).Create(&more), more)
	}},
	{"create of nothing", func(p *play) {
		var none []gormtests.User
		p.note(p.Create(&none), p.Create(&[]gormtests.User{}), p.CreateInBatches(&none, 3))
	}},
	{"create from maps", func(p *play) {
		p.note(p.Model(&gormtests.User{}).Create(map[string]any{"Name": "a", "age": 7}))
		maps := []map[string]any{{"Name": "b", "Age": 1}, {"Name": "c", "Age": 2}}
		p.note(p.Model(&gormtests.User{}).Create(&maps)) // without the plugin gorm adds its own maps
	}},
	{"create from maps with expressions", func(p *play) {
		p.note(p.Model(&gormtests.User{}).Create(map[string]any{"Name": "a", "Age": gorm.Expr("? + 1", 6)}))
	}},
	{"select and omit", func(p *play) {
		a, b, c := who("a", 1), who("b", 1), who("c", 1)
		p.note(p.Select("Name", "Age").Create(a), a)
		p.note(p.Omit("Age", "Account", "Pets").Create(b), b)
		p.note(p.Omit(clause.Associations).Create(c), c)
		d := who("d", 2)
		p.note(p.Select("Name", "Pets", "Languages").Create(d), d)
	}},
	{"omit what many to many points to", func(p *play) {
		l := gormtests.Language{Code: "x", Name: "x"}
		p.note(p.Create(&l))
		u := who("a", 0)
		u.Languages = []gormtests.Language{l}
		p.note(p.Omit("Languages.*").Create(u), u)
	}},
	{"keys that are given", func(p *play) {
		u := who("a", 0)
		u.ID = 77
		p.note(p.Create(u), u, u.ID)
		mixed := []gormtests.User{{Name: "b", Model: gorm.Model{ID: 901}}, {Name: "c"}}
		p.note(p.Create(&mixed), mixed)
	}},
	{"save", func(p *play) {
		u := who("a", 1)
		p.note(p.Save(u), u)
		u.Name, u.Age = "a2", 30
		u.Pets = append(u.Pets, &gormtests.Pet{Name: "late"})
		p.note(p.Save(u), u)
		us := []*gormtests.User{u, who("b", 0)}
		u.Age = 31
		p.note(p.Save(&us), us)
	}},
	{"save of a key that is not there", func(p *play) {
		u := who("a", 0)
		u.ID = 555
		p.note(p.Save(u), u, u.ID)
	}},
	{"full save of associations", func(p *play) {
		u := who("a", 2)
		p.note(p.Create(u))
		u.Pets[0].Name, u.Company.Name, u.Account.Number = "renamed", "renamed inc", "renamed no"
		u.Toys = append(u.Toys, gormtests.Toy{Name: "new toy"})
		p.note(p.Session(&gorm.Session{FullSaveAssociations: true}).Updates(u), u)
	}},
	{"first or create and first or init", func(p *play) {
		var a, b, c gormtests.User
		p.note(p.Where(gormtests.User{Name: "a"}).FirstOrCreate(&a), a)
		p.note(p.Where(gormtests.User{Name: "a"}).Attrs(gormtests.User{Age: 9}).FirstOrCreate(&b), b, a.ID == b.ID)
		p.note(p.Where(gormtests.User{Name: "a"}).Assign(gormtests.User{Age: 40}).FirstOrCreate(&c), c)
		var d gormtests.User
		p.note(p.Where(gormtests.User{Name: "d"}).Attrs(gormtests.User{Age: 9}).FirstOrInit(&d), d)
	}},
	{"do nothing", func(p *play) {
		l := gormtests.Language{Code: "en", Name: "a"}
		p.note(p.Create(&l), p.Clauses(clause.OnConflict{DoNothing: true}).Create(&gormtests.Language{Code: "en", Name: "b"}))
		c := gormtests.Company{Name: "c"}
		p.note(p.Create(&c))
		again := gormtests.Company{ID: c.ID, Name: "again"}
		p.note(p.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error, again) // on MariaDB gorm reports a written row
		fresh := gormtests.Company{Name: "fresh"}
		p.note(p.Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh), fresh)
	}},
	{"update on conflict", func(p *play) {
		c := gormtests.Company{Name: "c"}
		p.note(p.Create(&c))
		again := gormtests.Company{ID: c.ID, Name: "again"}
		p.note(p.Clauses(clause.OnConflict{UpdateAll: true}).Create(&again), again)
		two := []gormtests.Company{{ID: c.ID, Name: "third"}, {Name: "new"}}
		p.note(p.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&two).Error, two)
	}},
	{"a belongs-to that is there already", func(p *play) {
		c := gormtests.Company{Name: "c"}
		p.note(p.Create(&c))
		u := who("u", 0)
		u.Company = c
		u.Manager = who("boss", 0)
		p.note(p.Create(u), u)
		v := who("v", 0)
		v.Company, v.Manager = c, u.Manager
		p.note(p.Create(v), v)
	}},
	{"appending, replacing, deleting, clearing", func(p *play) {
		u := who("u", 1)
		p.note(p.Create(u))
		for name, more := range map[string]any{"Account": &gormtests.Account{Number: "n2"}} {
			p.note(p.Model(u).Association(name).Append(more), p.Model(u).Association(name).Count())
		}
		p.note(p.Model(u).Association("Pets").Append(&gormtests.Pet{Name: "p2"}, &gormtests.Pet{Name: "p3"}), p.Model(u).Association("Pets").Count())
		p.note(p.Model(u).Association("Pets").Replace(&gormtests.Pet{Name: "p4"}), p.Model(u).Association("Pets").Count(), u)
		p.note(p.Model(u).Association("Toys").Append(&gormtests.Toy{Name: "t2"}), p.Model(u).Association("Toys").Count())
		p.note(p.Model(u).Association("Company").Replace(&gormtests.Company{Name: "c2"}), u)
		p.note(p.Model(u).Association("Manager").Replace(who("m2", 0)), u)
		p.note(p.Model(u).Association("Friends").Append(who("f2", 0), who("f3", 0)), p.Model(u).Association("Friends").Count())
		p.note(p.Model(u).Association("Friends").Delete(u.Friends[0]), p.Model(u).Association("Friends").Count())
		p.note(p.Model(u).Association("Languages").Replace(&gormtests.Language{Code: "z", Name: "z"}), p.Model(u).Association("Languages").Count())
		p.note(p.Model(u).Association("Team").Append(who("t1", 0)), p.Model(u).Association("Team").Count())
		p.note(p.Model(u).Association("Languages").Clear(), p.Model(u).Association("Languages").Count(), u)
	}},
	{"associations of several parents", func(p *play) {
		us := []*gormtests.User{who("a", 1), who("b", 1)}
		p.note(p.Create(&us))
		p.note(p.Model(&us).Association("Pets").Append(&gormtests.Pet{Name: "pa"}, &gormtests.Pet{Name: "pb"}), p.Model(&us).Association("Pets").Count())
		p.note(p.Model(&us).Association("Languages").Append(&[]gormtests.Language{{Code: "1"}, {Code: "2"}}, &gormtests.Language{Code: "3"}), us)
		var pets []gormtests.Pet
		p.note(p.Model(&us).Association("Pets").Find(&pets), len(pets))
	}},
	{"updates and deletes", func(p *play) {
		us := []*gormtests.User{who("a", 1), who("b", 1), who("c", 0)}
		p.note(p.Create(&us))
		p.note(p.Model(us[0]).Update("age", 50), p.Model(us[1]).Updates(gormtests.User{Age: 51, Name: "b2"}), p.Model(&gormtests.User{}).Where("name = ?", "c").UpdateColumn("age", gorm.Expr("age + ?", 1)))
		p.note(p.Delete(us[0]), p.Select("Account", "Pets").Delete(us[1]), p.Unscoped().Delete(us[2]))
		var left []gormtests.User
		p.note(p.Order("name").Find(&left), left, p.Delete(&gormtests.User{}))
	}},
	{"reading in every way", func(p *play) {
		us := []*gormtests.User{who("a", 1), who("b", 2), who("c", 0)}
		p.note(p.Create(&us))
		var list []gormtests.User
		p.note(p.Joins("Company").Joins("Manager").Order("name").Find(&list), list)
		var n int64
		p.note(p.Model(&gormtests.User{}).Where("age > ?", 1).Count(&n), n)
		var namesOf []string
		p.note(p.Model(&gormtests.User{}).Order("name").Pluck("name", &namesOf), namesOf)
		var got []string
		p.note(p.Order("name").FindInBatches(&list, 2, func(*gorm.DB, int) error {
			for _, u := range list {
				got = append(got, u.Name)
			}
			return nil
		}).Error)
		var sum struct{ Total int }
		p.note(p.Model(&gormtests.User{}).Select("sum(age) AS total").Scan(&sum), sum.Total, len(got))
		p.note(p.Where("name IN (?)", p.Model(&gormtests.User{}).Select("name").Where("age = ?", 18)).Order("name").Find(&list), list)
	}},
	{"transactions", func(p *play) {
		p.note(p.Transaction(func(tx *gorm.DB) error {
			u := who("kept", 1)
			p.note(tx.Create(u), u)
			_ = tx.Transaction(func(nested *gorm.DB) error {
				v := who("undone", 1)
				p.note(nested.Create(v))
				return errors.New("undo")
			})
			return nil
		}))
		p.note(p.Transaction(func(tx *gorm.DB) error {
			p.note(tx.Create(who("gone", 1)))
			return errors.New("no")
		}))
		tx := p.Begin()
		p.note(tx.Create(who("early", 0)), tx.SavePoint("s"), tx.Create(who("late", 0)), tx.RollbackTo("s"), tx.Commit())
	}},
	{"refused rows", func(p *play) {
		p.note(p.Create(&gormtests.Language{Code: "en"}), p.Create(&gormtests.Language{Code: "en"}).Error != nil)
		u := who("u", 1)
		u.Languages[0].Code = strings.Repeat("x", 10)
		u.ID = 9
		p.note(p.Create(u), p.Create(&gormtests.User{Name: "twice", Model: gorm.Model{ID: 9}}).Error != nil)
	}},
	{"returning", func(p *play) {
		us := []gormtests.User{*who("a", 0), *who("b", 0)}
		p.note(p.Clauses(clause.Returning{}).Create(&us), us)
	}},
	{"generics", func(p *play) {
		ctx := context.Background()
		u := who("g", 2)
		p.note(gorm.G[gormtests.User](p.DB).Create(ctx, u), u)
		us := []gormtests.User{*who("h", 0), *who("i", 1), *who("j", 0)}
		p.note(gorm.G[gormtests.User](p.DB).CreateInBatches(ctx, &us, 2), us)
		one, err := gorm.G[gormtests.User](p.DB).Where("name = ?", "g").Preload("Pets", inOrder).First(ctx)
		p.note(err, one)
		n, err := gorm.G[gormtests.User](p.DB).Where("name = ?", "h").Update(ctx, "age", 60)
		p.note(n, err)
		n, err = gorm.G[gormtests.User](p.DB).Where("name = ?", "j").Delete(ctx)
		p.note(n, err)
	}},
	{"sessions and scopes", func(p *play) {
		a, b := who("a", 1), who("b", 1)
		p.note(p.Session(&gorm.Session{SkipHooks: true, SkipDefaultTransaction: true}).Create(a), a)
		p.note(p.Scopes(func(tx *gorm.DB) *gorm.DB { return tx.Omit("Pets") }).Create(b), b)
		tx := p.Session(&gorm.Session{}).Where("age = ?", 18)
		var n, m int64
		p.note(tx.Model(&gormtests.User{}).Count(&n), n, tx.Model(&gormtests.User{}).Where("name = ?", "a").Count(&m), m)
		p.note(p.Table("like_users").Create(map[string]any{"id": 4242, "name": "raw"}))
	}},
	{"a row that is created again", func(p *play) {
		u := who("a", 0)
		p.note(p.Create(u))
		copied := *u
		copied.ID, copied.Name = 0, "b"
		p.note(p.Create(&copied), copied, u.ID != copied.ID)
	}},
	{"a dry run", func(p *play) {
		u := who("a", 1)
		stmt := p.Session(&gorm.Session{DryRun: true}).Create(u).Statement
		p.note(strings.Contains(stmt.SQL.String(), "like_users"), u.ID)
		p.note(p.Create(u), u)
	}},
}
