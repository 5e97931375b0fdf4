-- A chat and forum: users, channels with members, posts, threads, reactions and files,
-- and each user's own preferences, drafts and notifications.
--
-- Tables and statements are written after those of Mattermost (mattermost/mattermost,
-- server/channels/store/sqlstore), Zulip (zulip/zulip), Discourse (discourse/discourse)
-- and Rocket.Chat (RocketChat/Rocket.Chat), simplified; ids are numbers and times are
-- milliseconds. As in Mattermost reactions, threads and files repeat the channel of
-- their post, thread memberships know only the post, and the root of a post that starts
-- a thread is 0, so that root_id says nothing about the shard.
-- The form of this file is described in package corpus.

CREATE TABLE users (
  id BIGINT NOT NULL PRIMARY KEY, username VARCHAR(64) NOT NULL UNIQUE, email VARCHAR(190) NOT NULL UNIQUE, password_hash VARCHAR(100) NOT NULL,
  nickname VARCHAR(64), roles VARCHAR(100) NOT NULL, timezone VARCHAR(60), create_at BIGINT NOT NULL, update_at BIGINT NOT NULL, delete_at BIGINT NOT NULL DEFAULT 0
);
-- broadcast: users

CREATE TABLE bots (user_id BIGINT NOT NULL PRIMARY KEY, description VARCHAR(200), owner_id BIGINT NOT NULL);
-- broadcast: bots

CREATE TABLE teams (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL UNIQUE, display_name VARCHAR(64) NOT NULL, delete_at BIGINT NOT NULL DEFAULT 0);
-- broadcast: teams

CREATE TABLE channels (
  id BIGINT NOT NULL PRIMARY KEY, team_id BIGINT NOT NULL, type VARCHAR(1) NOT NULL, name VARCHAR(64) NOT NULL, display_name VARCHAR(64) NOT NULL,
  header VARCHAR(200), creator_id BIGINT NOT NULL, last_post_at BIGINT NOT NULL DEFAULT 0, total_msg_count BIGINT NOT NULL DEFAULT 0,
  create_at BIGINT NOT NULL, update_at BIGINT NOT NULL, delete_at BIGINT NOT NULL DEFAULT 0
);
-- sharded: channels by id in group channel

CREATE TABLE channel_members (
  channel_id BIGINT NOT NULL, user_id BIGINT NOT NULL, roles VARCHAR(100), last_viewed_at BIGINT NOT NULL DEFAULT 0, msg_count BIGINT NOT NULL DEFAULT 0,
  mention_count BIGINT NOT NULL DEFAULT 0, notify_props TEXT, last_update_at BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (channel_id, user_id)
);
-- sharded: channel_members by channel_id in group channel

CREATE TABLE posts (
  id BIGINT NOT NULL PRIMARY KEY, channel_id BIGINT NOT NULL, user_id BIGINT NOT NULL, root_id BIGINT NOT NULL DEFAULT 0, message TEXT NOT NULL,
  type VARCHAR(26) NOT NULL DEFAULT '', hashtags VARCHAR(200) NOT NULL DEFAULT '', has_reactions BOOLEAN NOT NULL DEFAULT 0, is_pinned BOOLEAN NOT NULL DEFAULT 0,
  create_at BIGINT NOT NULL, update_at BIGINT NOT NULL, edit_at BIGINT NOT NULL DEFAULT 0, delete_at BIGINT NOT NULL DEFAULT 0
);
-- sharded: posts by channel_id in group channel, also id

CREATE TABLE reactions (
  post_id BIGINT NOT NULL, user_id BIGINT NOT NULL, emoji_name VARCHAR(64) NOT NULL, channel_id BIGINT NOT NULL, create_at BIGINT NOT NULL,
  PRIMARY KEY (post_id, user_id, emoji_name)
);
-- sharded: reactions by channel_id in group channel, also post_id; post_id refers to posts

CREATE TABLE threads (
  post_id BIGINT NOT NULL PRIMARY KEY, channel_id BIGINT NOT NULL, reply_count BIGINT NOT NULL DEFAULT 0, last_reply_at BIGINT NOT NULL DEFAULT 0, delete_at BIGINT NOT NULL DEFAULT 0
);
-- sharded: threads by channel_id in group channel, also post_id; post_id refers to posts

CREATE TABLE thread_memberships (
  post_id BIGINT NOT NULL, user_id BIGINT NOT NULL, following BOOLEAN NOT NULL DEFAULT 1, last_viewed BIGINT NOT NULL DEFAULT 0,
  last_updated BIGINT NOT NULL DEFAULT 0, unread_mentions BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (post_id, user_id)
);
-- sharded: thread_memberships by post_id in group channel

CREATE TABLE file_infos (
  id BIGINT NOT NULL PRIMARY KEY, post_id BIGINT NOT NULL, channel_id BIGINT NOT NULL, creator_id BIGINT NOT NULL, name VARCHAR(200) NOT NULL,
  extension VARCHAR(20) NOT NULL, size BIGINT NOT NULL, create_at BIGINT NOT NULL, delete_at BIGINT NOT NULL DEFAULT 0
);
-- sharded: file_infos by channel_id in group channel, also id, post_id; post_id refers to posts

CREATE TABLE team_members (team_id BIGINT NOT NULL, user_id BIGINT NOT NULL, roles VARCHAR(100), delete_at BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (user_id, team_id));
-- sharded: team_members by user_id in group member

CREATE TABLE preferences (user_id BIGINT NOT NULL, category VARCHAR(32) NOT NULL, name VARCHAR(32) NOT NULL, value VARCHAR(200) NOT NULL, PRIMARY KEY (user_id, category, name));
-- sharded: preferences by user_id in group member

CREATE TABLE statuses (user_id BIGINT NOT NULL PRIMARY KEY, status VARCHAR(20) NOT NULL, manual BOOLEAN NOT NULL DEFAULT 0, last_activity_at BIGINT NOT NULL);
-- sharded: statuses by user_id in group member

CREATE TABLE drafts (user_id BIGINT NOT NULL, channel_id BIGINT NOT NULL, root_id BIGINT NOT NULL DEFAULT 0, message TEXT NOT NULL, update_at BIGINT NOT NULL, PRIMARY KEY (user_id, channel_id, root_id));
-- sharded: drafts by user_id in group member

CREATE TABLE user_messages (user_id BIGINT NOT NULL, message_id BIGINT NOT NULL, flags BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (user_id, message_id));
-- sharded: user_messages by user_id in group member

CREATE TABLE notifications (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, notification_type INT NOT NULL, post_id BIGINT, data VARCHAR(200), is_read BOOLEAN NOT NULL DEFAULT 0, create_at BIGINT NOT NULL
);
-- sharded: notifications by user_id in group member, also id

CREATE TABLE sessions (id BIGINT NOT NULL PRIMARY KEY, token VARCHAR(64) NOT NULL UNIQUE, user_id BIGINT NOT NULL, expires_at BIGINT NOT NULL, last_activity_at BIGINT NOT NULL);
-- home: sessions

CREATE TABLE jobs (
  id BIGINT NOT NULL PRIMARY KEY, type VARCHAR(32) NOT NULL, priority BIGINT NOT NULL, create_at BIGINT NOT NULL, start_at BIGINT NOT NULL DEFAULT 0,
  last_activity_at BIGINT NOT NULL DEFAULT 0, status VARCHAR(32) NOT NULL, progress BIGINT NOT NULL DEFAULT 0, data TEXT
);
-- home: jobs

CREATE TABLE webhooks (id BIGINT NOT NULL PRIMARY KEY, channel_id BIGINT NOT NULL, user_id BIGINT NOT NULL, display_name VARCHAR(64), delete_at BIGINT NOT NULL DEFAULT 0);
-- home: webhooks

CREATE TABLE audits (id BIGINT NOT NULL PRIMARY KEY, create_at BIGINT NOT NULL, user_id BIGINT NOT NULL, action VARCHAR(200) NOT NULL, ip_address VARCHAR(64));
-- home: audits

-- name: log in by user name or e-mail
-- from: mattermost, user_store.go, GetForLogin
-- args: 'ann', 'ann'
-- with: broadcast
-- without: broadcast
SELECT * FROM users WHERE username = ? OR email = ?;

-- name: users by their ids
-- from: mattermost, user_store.go, GetProfileByIds
-- args: 5, 6, 8
-- with: broadcast
-- without: broadcast
SELECT id, username, nickname FROM users WHERE id IN (?, ?, ?) ORDER BY username;

-- name: complete a user name
-- from: mattermost, user_store.go, Search
-- args: 'an%', 'an%'
-- with: broadcast
-- without: broadcast
SELECT id, username, nickname FROM users WHERE (username LIKE ? OR nickname LIKE ?) AND delete_at = 0 ORDER BY username LIMIT 25;

-- name: sign up
-- from: mattermost, user_store.go, Save
-- args: 5, 'ann', 'ann@example.com', 'hash', 'system_user', 1714550000000, 1714550000000
-- with: broadcast
-- without: broadcast
INSERT INTO users (id, username, email, password_hash, roles, create_at, update_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: change a nickname
-- from: mattermost, user_store.go, Update
-- args: 'Annie', 1714550000001, 5
-- with: broadcast
-- without: broadcast
UPDATE users SET nickname = ?, update_at = ? WHERE id = ?;

-- name: open a session
-- from: mattermost, session_store.go, Save
-- args: 1, 'tok', 5, 1719550000000, 1714550000000
-- with: home
-- without: home
INSERT INTO sessions (id, token, user_id, expires_at, last_activity_at) VALUES (?, ?, ?, ?, ?);

-- name: the session of a token
-- from: mattermost, session_store.go, Get
-- args: 'tok', 1
-- with: home
-- without: home
SELECT * FROM sessions WHERE token = ? OR id = ? LIMIT 1;

-- name: a session is in use
-- from: mattermost, session_store.go, UpdateLastActivityAt
-- args: 1714550000002, 1
-- with: home
-- without: home
UPDATE sessions SET last_activity_at = ? WHERE id = ?;

-- name: delete expired sessions
-- from: mattermost, session_store.go, Cleanup
-- args: 1714550000000, 1000
-- dialect: mysql
-- with: home
-- without: home
DELETE FROM sessions WHERE expires_at <> 0 AND expires_at < ? LIMIT ?;

-- name: the teams of a user
-- from: mattermost, team_store.go, GetTeamsByUserId
-- args: 5
-- with: one
-- without: one
SELECT t.* FROM teams t JOIN team_members tm ON tm.team_id = t.id WHERE tm.user_id = ? AND tm.delete_at = 0 AND t.delete_at = 0;

-- name: join a team
-- from: mattermost, team_store.go, SaveMember
-- args: 2, 5, 'team_user'
-- with: one
-- without: one
INSERT INTO team_members (team_id, user_id, roles) VALUES (?, ?, ?);

-- name: the members of a team, a page
-- from: mattermost, team_store.go, GetMembers
-- args: 2, 60, 0
-- with: scatter
-- without: scatter
SELECT tm.user_id, tm.roles, u.username FROM team_members tm JOIN users u ON u.id = tm.user_id
WHERE tm.team_id = ? AND tm.delete_at = 0 AND u.delete_at = 0 ORDER BY u.username, tm.user_id LIMIT ? OFFSET ?;

-- name: how many members a team has
-- from: mattermost, team_store.go, GetTotalMemberCount
-- args: 2
-- with: scatter
-- without: scatter
SELECT COUNT(DISTINCT tm.user_id) FROM team_members tm JOIN users u ON u.id = tm.user_id WHERE tm.team_id = ? AND tm.delete_at = 0;

-- name: the preferences of a user
-- from: mattermost, preference_store.go, GetAll
-- args: 5
-- with: one
-- without: one
SELECT * FROM preferences WHERE user_id = ?;

-- name: one preference
-- from: mattermost, preference_store.go, Get
-- args: 5, 'display', 'theme'
-- with: one
-- without: one
SELECT value FROM preferences WHERE user_id = ? AND category = ? AND name = ?;

-- name: save preferences, MySQL
-- from: mattermost, preference_store.go, saveTx
-- args: 5, 'display', 'theme', 'dark', 5, 'display', 'zone', 'UTC'
-- dialect: mysql
-- with: one
-- without: one
INSERT INTO preferences (user_id, category, name, value) VALUES (?, ?, ?, ?), (?, ?, ?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value);

-- name: save preferences
-- from: mattermost, preference_store.go, saveTx
-- args: 5, 'display', 'theme', 'dark', 5, 'display', 'zone', 'UTC'
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO preferences (user_id, category, name, value) VALUES (?, ?, ?, ?), (?, ?, ?, ?) ON CONFLICT (user_id, category, name) DO UPDATE SET value = excluded.value;

-- name: delete the preferences of a category
-- from: mattermost, preference_store.go, DeleteCategory
-- args: 5, 'flagged_post'
-- with: one
-- without: one
DELETE FROM preferences WHERE user_id = ? AND category = ?;

-- name: set a status, MySQL
-- from: mattermost, status_store.go, SaveOrUpdate
-- args: 5, 'online', 0, 1714550000000
-- dialect: mysql
-- with: one
-- without: one
INSERT INTO statuses (user_id, status, manual, last_activity_at) VALUES (?, ?, ?, ?)
ON DUPLICATE KEY UPDATE status = VALUES(status), manual = VALUES(manual), last_activity_at = VALUES(last_activity_at);

-- name: set a status
-- from: mattermost, status_store.go, SaveOrUpdate
-- args: 5, 'online', 0, 1714550000000
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO statuses (user_id, status, manual, last_activity_at) VALUES (?, ?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET status = excluded.status, last_activity_at = excluded.last_activity_at;

-- name: the statuses of some users
-- from: mattermost, status_store.go, GetByIds
-- args: 5, 6, 8
-- with: scatter
-- without: scatter
SELECT user_id, status, last_activity_at FROM statuses WHERE user_id IN (?, ?, ?);

-- name: how many are active
-- from: mattermost, status_store.go, GetTotalActiveUsersCount
-- args: 1714550000000
-- with: scatter
-- without: scatter
SELECT COUNT(user_id) FROM statuses WHERE last_activity_at > ?;

-- name: keep a draft
-- from: mattermost, draft_store.go, Upsert; REPLACE by its primary key
-- args: 5, 9, 0, 'Hel', 1714550000000
-- with: one
-- without: one
REPLACE INTO drafts (user_id, channel_id, root_id, message, update_at) VALUES (?, ?, ?, ?, ?);

-- name: the drafts of a user
-- from: mattermost, draft_store.go, GetDraftsForUser
-- args: 5
-- with: one
-- without: one
SELECT * FROM drafts WHERE user_id = ? AND message <> '' ORDER BY update_at DESC;

-- name: drop the draft that was sent
-- from: mattermost, draft_store.go, Delete
-- args: 5, 9, 0
-- with: one
-- without: one
DELETE FROM drafts WHERE user_id = ? AND channel_id = ? AND root_id = ?;

-- name: a channel
-- from: mattermost, channel_store.go, Get
-- args: 9
-- with: one
-- without: one
SELECT * FROM channels WHERE id = ?;

-- name: a channel by its name
-- from: mattermost, channel_store.go, getByName
-- args: 2, 'town-square'
-- with: scatter
-- without: scatter
SELECT * FROM channels WHERE team_id = ? AND name = ? AND delete_at = 0 LIMIT 1;

-- name: open a channel
-- from: mattermost, channel_store.go, saveChannelT
-- args: 9, 2, 'O', 'random', 'Random', 5, 1714550000000, 1714550000000
-- with: one
-- without: one
INSERT INTO channels (id, team_id, type, name, display_name, creator_id, create_at, update_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: the channels of a user
-- from: mattermost, channel_store.go, GetChannels
-- args: 5, 2
-- with: scatter
-- without: scatter
SELECT c.* FROM channels c JOIN channel_members cm ON cm.channel_id = c.id WHERE cm.user_id = ? AND c.team_id = ? AND c.delete_at = 0 ORDER BY c.display_name, c.id;

-- name: what is unread in the channels of a user
-- from: mattermost, channel_store.go, GetTeamChannelsWithUnreadAndMentions
-- args: 2, 5
-- with: scatter
-- without: scatter
SELECT c.id, c.type, c.total_msg_count, c.last_post_at, cm.msg_count, cm.mention_count, cm.last_viewed_at
FROM channel_members cm JOIN channels c ON cm.channel_id = c.id WHERE c.team_id = ? AND cm.user_id = ?;

-- name: open channels that a user has not joined
-- from: mattermost, channel_store.go, GetMoreChannels
-- args: 2, 5, 50, 0
-- with: scatter
-- without: scatter
SELECT c.* FROM channels c WHERE c.team_id = ? AND c.type = 'O' AND c.delete_at = 0
AND NOT EXISTS (SELECT 1 FROM channel_members cm WHERE cm.channel_id = c.id AND cm.user_id = ?) ORDER BY c.display_name, c.id LIMIT ? OFFSET ?;

-- name: search channels
-- from: mattermost, channel_store.go, SearchInTeam
-- args: 2, '%ran%', '%ran%'
-- with: scatter
-- without: scatter
SELECT id, name, display_name FROM channels WHERE team_id = ? AND delete_at = 0 AND (name LIKE ? OR display_name LIKE ?) ORDER BY display_name, id LIMIT 50;

-- name: rename a channel
-- from: mattermost, channel_store.go, updateChannelT
-- args: 'Random', 'all else', 1714550000000, 9
-- with: one
-- without: one
UPDATE channels SET display_name = ?, header = ?, update_at = ? WHERE id = ?;

-- name: archive a channel
-- from: mattermost, channel_store.go, SetDeleteAt
-- args: 1714550000000, 1714550000000, 9
-- with: one
-- without: one
UPDATE channels SET delete_at = ?, update_at = ? WHERE id = ?;

-- name: a channel has a new post
-- from: mattermost, post_store.go, SaveMultiple
-- args: 1714550000000, 1, 9
-- dialect: mysql
-- with: one
-- without: one
UPDATE channels SET last_post_at = GREATEST(?, last_post_at), total_msg_count = total_msg_count + ? WHERE id = ?;

-- name: channels of a team by kind
-- from: mattermost, channel_store.go, AnalyticsTypeCount
-- args: 2
-- with: scatter
-- without: scatter
SELECT type, COUNT(*) AS channels FROM channels WHERE team_id = ? AND delete_at = 0 GROUP BY type;

-- name: join a channel
-- from: mattermost, channel_store.go, SaveMember
-- args: 9, 5, 'channel_user', 1714550000000
-- with: one
-- without: one
INSERT INTO channel_members (channel_id, user_id, roles, last_update_at) VALUES (?, ?, ?, ?);

-- name: add several users to a channel
-- from: mattermost, channel_store.go, SaveMultipleMembers
-- args: 9, 6, 'channel_user', 1714550000000, 9, 8, 'channel_user', 1714550000000
-- with: one
-- without: one
INSERT INTO channel_members (channel_id, user_id, roles, last_update_at) VALUES (?, ?, ?, ?), (?, ?, ?, ?);

-- name: the members of a channel with their names, a page
-- from: mattermost, user_store.go, GetProfilesInChannel
-- args: 9, 60, 0
-- with: one
-- without: one
SELECT u.id, u.username, u.nickname FROM users u JOIN channel_members cm ON cm.user_id = u.id
WHERE cm.channel_id = ? AND u.delete_at = 0 ORDER BY u.username LIMIT ? OFFSET ?;

-- name: users who are not in a channel
-- from: mattermost, user_store.go, GetProfilesNotInChannel
-- args: 9, 60
-- with: one
-- without: one
SELECT u.id, u.username FROM users u LEFT JOIN channel_members cm ON cm.user_id = u.id AND cm.channel_id = ?
WHERE cm.user_id IS NULL AND u.delete_at = 0 ORDER BY u.username LIMIT ?;

-- name: is the user in the channel
-- from: mattermost, channel_store.go, GetMember
-- args: 9, 5
-- with: one
-- without: one
SELECT EXISTS (SELECT 1 FROM channel_members WHERE channel_id = ? AND user_id = ?);

-- name: how many members a channel has
-- from: mattermost, channel_store.go, GetMemberCount
-- args: 9
-- with: one
-- without: one
SELECT COUNT(*) FROM channel_members cm JOIN users u ON u.id = cm.user_id WHERE cm.channel_id = ? AND u.delete_at = 0;

-- name: how many members some channels have
-- from: mattermost, channel_store.go, GetChannelsMemberCount
-- args: 9, 10, 11
-- with: scatter
-- without: scatter
SELECT cm.channel_id, COUNT(*) AS members FROM channel_members cm JOIN users u ON u.id = cm.user_id
WHERE cm.channel_id IN (?, ?, ?) AND u.delete_at = 0 GROUP BY cm.channel_id;

-- name: a user has looked at a channel
-- from: mattermost, channel_store.go, UpdateLastViewedAt
-- args: 1714550000000, 12, 5, 9
-- with: one
-- without: one
UPDATE channel_members SET last_viewed_at = ?, msg_count = ?, mention_count = 0 WHERE user_id = ? AND channel_id = ?;

-- name: count mentions
-- from: mattermost, channel_store.go, IncrementMentionCount
-- args: 1714550000000, 9, 6, 8
-- with: one
-- without: one
UPDATE channel_members SET mention_count = mention_count + 1, last_update_at = ? WHERE channel_id = ? AND user_id IN (?, ?);

-- name: leave a channel
-- from: mattermost, channel_store.go, RemoveMember
-- args: 9, 5
-- with: one
-- without: one
DELETE FROM channel_members WHERE channel_id = ? AND user_id = ?;

-- name: leave all channels
-- from: mattermost, channel_store.go, PermanentDeleteMembersByUser
-- args: 5
-- with: refused
-- without: refused
-- because: a write without the key goes to every shard; delete channel by channel, or allow it for this statement with sharding.AllShards
DELETE FROM channel_members WHERE user_id = ?;

-- name: write a post
-- from: mattermost, post_store.go, SaveMultiple
-- args: 1033, 9, 5, 'Hello', 1714550000000, 1714550000000
-- with: one
-- without: one
INSERT INTO posts (id, channel_id, user_id, message, create_at, update_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: answer a post
-- from: rocket.chat, packages/models/src/models/Messages.ts, threads; GORM Create
-- args: 2057, 9, 6, 1033, 'Hi', 1714550000100, 1714550000100
-- with: one
-- without: one
INSERT INTO `posts` (`id`,`channel_id`,`user_id`,`root_id`,`message`,`create_at`,`update_at`) VALUES (?,?,?,?,?,?,?);

-- name: posts of a channel, a page
-- from: mattermost, post_store.go, getRootPosts
-- args: 9, 60, 0
-- with: one
-- without: one
SELECT * FROM posts WHERE channel_id = ? AND delete_at = 0 ORDER BY create_at DESC LIMIT ? OFFSET ?;

-- name: the roots of that page's answers
-- from: mattermost, post_store.go, getParentsPosts
-- args: 9, 9, 60
-- with: one
-- without: one
SELECT p.* FROM posts p JOIN (SELECT DISTINCT q.root_id FROM (SELECT root_id FROM posts WHERE channel_id = ? AND delete_at = 0 ORDER BY create_at DESC LIMIT 60) q WHERE q.root_id <> 0) r
ON p.root_id = r.root_id OR p.id = r.root_id WHERE p.channel_id = ? AND p.delete_at = 0 ORDER BY p.create_at LIMIT ?;

-- name: what has changed in a channel
-- from: mattermost, post_store.go, GetPostsSince
-- args: 1714540000000, 9
-- with: refused
-- without: refused
-- because: the second posts is found by root_id, which does not say the shard; add AND p.channel_id = ?
WITH changed AS (SELECT * FROM posts WHERE update_at > ? AND channel_id = ? LIMIT 1000)
SELECT * FROM changed UNION SELECT p.* FROM posts p WHERE p.id IN (SELECT root_id FROM changed) ORDER BY create_at DESC;

-- name: posts of a channel before one
-- from: mattermost, post_store.go, getPostsAround
-- args: 2057, 9, 30
-- with: one
-- without: one
SELECT * FROM posts WHERE create_at < (SELECT create_at FROM posts WHERE id = ?) AND channel_id = ? AND delete_at = 0 ORDER BY create_at DESC LIMIT ?;

-- name: messages around an anchor
-- from: zulip, zerver/lib/narrow.py, limit_query_to_range
-- args: 9, 2057, 9, 2057
-- with: one
-- without: one
SELECT id, user_id, message FROM (SELECT * FROM posts WHERE channel_id = ? AND id <= ? ORDER BY id DESC LIMIT 50) older
UNION ALL SELECT id, user_id, message FROM (SELECT * FROM posts WHERE channel_id = ? AND id > ? ORDER BY id LIMIT 50) newer ORDER BY id;

-- name: a post
-- from: mattermost, post_store.go, GetSingle
-- args: 1033
-- with: one
-- without: scatter
SELECT * FROM posts WHERE id = ? AND delete_at = 0;

-- name: a thread by its root
-- from: mattermost, post_store.go, Get
-- args: 1033, 1033
-- with: scatter
-- without: scatter
SELECT * FROM posts WHERE (id = ? OR root_id = ?) AND delete_at = 0 ORDER BY create_at, id;

-- name: some posts with the number of their answers
-- from: mattermost, post_store.go, GetPostsByIds
-- args: 1033, 2057
-- with: refused
-- without: refused
-- because: the answers are found by root_id, which does not say the shard; add AND r.channel_id = p.channel_id
SELECT p.*, (SELECT COUNT(*) FROM posts r WHERE r.root_id = p.id AND r.delete_at = 0) AS reply_count FROM posts p WHERE p.id IN (?, ?) ORDER BY p.create_at DESC;

-- name: how many answers some posts have
-- from: mattermost, post_store.go, populateReplyCount
-- args: 1033, 3081
-- with: scatter
-- without: scatter
SELECT root_id, COUNT(id) AS answers FROM posts WHERE root_id IN (?, ?) AND delete_at = 0 GROUP BY root_id;

-- name: edit a post
-- from: mattermost, post_store.go, Update, by Id alone
-- args: 'Hello!', 1714550000200, 1714550000200, 1033
-- with: one
-- without: scatter
UPDATE posts SET message = ?, edit_at = ?, update_at = ? WHERE id = ?;

-- name: touch the root of a thread
-- from: mattermost, post_store.go, SaveMultiple, by Id alone
-- args: 1714550000100, 1033, 1714550000100
-- with: one
-- without: scatter
UPDATE posts SET update_at = ? WHERE id = ? AND update_at < ?;

-- name: delete a post and its answers
-- from: mattermost, post_store.go, Delete
-- args: 1714550000300, 1714550000300, 9, 1033, 1033
-- with: one
-- without: one
UPDATE posts SET delete_at = ?, update_at = ? WHERE channel_id = ? AND (id = ? OR root_id = ?);

-- name: pin a post
-- from: rocket.chat, packages/models/src/models/Messages.ts, setPinnedByIdAndUserId; GORM Updates of a loaded struct
-- args: 1, 1714550000300, 1033, 9
-- with: one
-- without: one
UPDATE `posts` SET `is_pinned`=?,`update_at`=? WHERE `id` = ? AND `channel_id` = ?;

-- name: the pinned posts of a channel
-- from: mattermost, channel_store.go, GetPinnedPosts
-- args: 9
-- with: one
-- without: one
SELECT p.*, (SELECT COUNT(*) FROM posts r WHERE r.root_id = p.id AND r.channel_id = p.channel_id) AS reply_count FROM posts p WHERE p.is_pinned = 1 AND p.delete_at = 0 AND p.channel_id = ? ORDER BY p.create_at;

-- name: move posts to another channel
-- from: discourse, app/models/post_mover.rb; rocket.chat, move to a discussion
-- args: 10, 1714550000400, 9, 1033, 2057
-- with: refused
-- without: refused
-- because: the rows would belong to another shard; insert them in the other channel and delete them here
UPDATE posts SET channel_id = ?, update_at = ? WHERE channel_id = ? AND id IN (?, ?);

-- name: search the posts of a user's channels
-- from: mattermost, post_store.go, search
-- args: '%lunch%', 5
-- with: scatter
-- without: scatter
SELECT p.id, p.channel_id, p.message, p.create_at FROM posts p WHERE p.delete_at = 0 AND p.message LIKE ?
AND p.channel_id IN (SELECT cm.channel_id FROM channel_members cm WHERE cm.user_id = ?) ORDER BY p.create_at DESC LIMIT 100;

-- name: posts of a user, newest first
-- from: discourse, user activity; zulip, narrow by sender
-- args: 5, 30, 0
-- with: scatter
-- without: scatter
SELECT * FROM posts WHERE user_id = ? AND delete_at = 0 ORDER BY create_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: does the user have access to a post
-- from: mattermost, channel_store.go, GetMemberForPost
-- args: 5, 1033
-- with: one
-- without: scatter
SELECT cm.* FROM channel_members cm JOIN posts p ON p.channel_id = cm.channel_id JOIN channels c ON c.id = cm.channel_id WHERE cm.user_id = ? AND p.id = ?;

-- name: posts by day
-- from: mattermost, post_store.go, AnalyticsPostCountsByDay
-- args: 1711900000000, 1714550000000
-- dialect: mysql
-- with: scatter
-- without: scatter
SELECT DATE(FROM_UNIXTIME(p.create_at / 1000)) AS name, COUNT(p.id) AS value FROM posts p WHERE p.create_at >= ? AND p.create_at <= ?
GROUP BY DATE(FROM_UNIXTIME(p.create_at / 1000)) ORDER BY name DESC LIMIT 30;

-- name: posts of people, not of bots
-- from: mattermost, post_store.go, AnalyticsPostCount
-- with: scatter
-- without: scatter
SELECT COUNT(*) AS value FROM posts p WHERE p.type = '' AND p.user_id NOT IN (SELECT user_id FROM bots);

-- name: posts of a team
-- from: mattermost, post_store.go, AnalyticsPostCount
-- args: 2
-- with: scatter
-- without: scatter
SELECT COUNT(*) AS value FROM posts p JOIN channels c ON c.id = p.channel_id WHERE c.team_id = ? AND p.delete_at = 0;

-- name: who posts most in a channel
-- from: mattermost, playbooks and insights, top members
-- args: 9, 1711900000000
-- with: one
-- without: one
SELECT p.user_id, u.username, COUNT(*) AS posts FROM posts p JOIN users u ON u.id = p.user_id WHERE p.channel_id = ? AND p.create_at >= ?
GROUP BY p.user_id, u.username HAVING COUNT(*) > 1 ORDER BY posts DESC, u.username LIMIT 10;

-- name: the busiest channels of a team
-- from: mattermost, insights, top channels
-- args: 2, 1711900000000
-- with: scatter
-- without: scatter
SELECT c.id, c.display_name, COUNT(*) AS posts FROM posts p JOIN channels c ON c.id = p.channel_id WHERE c.team_id = ? AND p.create_at >= ?
GROUP BY c.id, c.display_name ORDER BY posts DESC, c.id LIMIT 10;

-- name: posts for the search index, in batches
-- from: mattermost, post_store.go, GetPostsBatchForIndexing
-- args: 1711900000000, 1711900000000, 0, 1000
-- with: scatter
-- without: scatter
SELECT p.*, c.team_id FROM posts p LEFT JOIN channels c ON c.id = p.channel_id WHERE p.create_at > ? OR (p.create_at = ? AND p.id > ?) ORDER BY p.create_at, p.id LIMIT ?;

-- name: delete posts that are too old, in batches
-- from: mattermost, post_store.go, PermanentDeleteBatch
-- args: 1700000000000, 1000
-- dialect: mysql
-- with: refused
-- without: refused
-- because: a write with LIMIT over several shards has no order; delete channel by channel
DELETE FROM posts WHERE create_at < ? LIMIT ?;

-- name: react to a post
-- from: mattermost, reaction_store.go, saveReactionAndUpdatePost
-- args: 1033, 6, '+1', 9, 1714550000500
-- with: one
-- without: one
INSERT INTO reactions (post_id, user_id, emoji_name, channel_id, create_at) VALUES (?, ?, ?, ?, ?);

-- name: take a reaction back
-- from: mattermost, reaction_store.go, deleteReactionAndUpdatePost
-- args: 1033, 6, '+1'
-- with: one
-- without: scatter
DELETE FROM reactions WHERE post_id = ? AND user_id = ? AND emoji_name = ?;

-- name: does a post still have reactions
-- from: mattermost, reaction_store.go, updatePostForReactionsOnDelete
-- args: 1714550000500, 1033, 1033
-- with: one
-- without: refused
-- because: neither posts nor reactions have a channel_id here; add it to both
UPDATE posts SET update_at = ?, has_reactions = (SELECT COUNT(*) > 0 FROM reactions WHERE reactions.post_id = ?) WHERE id = ?;

-- name: the reactions of some posts
-- from: mattermost, reaction_store.go, BulkGetForPosts
-- args: 1033, 2057
-- with: one
-- without: scatter
SELECT * FROM reactions WHERE post_id IN (?, ?) ORDER BY create_at;

-- name: the most used reactions
-- from: mattermost, insights, top reactions
-- args: 1711900000000
-- with: scatter
-- without: scatter
SELECT emoji_name, COUNT(*) AS used FROM reactions WHERE create_at >= ? GROUP BY emoji_name ORDER BY used DESC, emoji_name LIMIT 10;

-- name: a thread has an answer
-- from: mattermost, post_store.go, updateThreadsFromPosts
-- args: 1714550000100, 1033
-- with: one
-- without: scatter
UPDATE threads SET reply_count = reply_count + 1, last_reply_at = ? WHERE post_id = ?;

-- name: a thread begins
-- from: mattermost, post_store.go, updateThreadsFromPosts
-- args: 1033, 9, 1, 1714550000100
-- with: one
-- without: one
INSERT INTO threads (post_id, channel_id, reply_count, last_reply_at) VALUES (?, ?, ?, ?);

-- name: the threads that a user follows
-- from: mattermost, thread_store.go, GetThreadsForUser, without its count of unread replies
-- args: 5, 25
-- with: scatter
-- without: refused
-- because: threads and thread_memberships are joined by post_id, which does not say the shard of a thread; give memberships a channel_id
SELECT t.post_id, t.channel_id, t.reply_count, t.last_reply_at, tm.last_viewed, tm.unread_mentions FROM threads t
JOIN thread_memberships tm ON tm.post_id = t.post_id WHERE tm.user_id = ? AND tm.following = 1 AND t.delete_at = 0 ORDER BY t.last_reply_at DESC, t.post_id LIMIT ?;

-- name: unread mentions of the threads of a user
-- from: mattermost, thread_store.go, GetTotalUnreadMentions
-- args: 5
-- with: scatter
-- without: refused
-- because: threads and thread_memberships are joined by post_id, which does not say the shard of a thread; give memberships a channel_id
SELECT COALESCE(SUM(tm.unread_mentions), 0) FROM thread_memberships tm LEFT JOIN threads t ON t.post_id = tm.post_id
WHERE tm.user_id = ? AND tm.following = 1 AND COALESCE(t.delete_at, 0) = 0;

-- name: follow a thread
-- from: mattermost, thread_store.go, saveMembership
-- args: 1033, 5, 1714550000100
-- with: one
-- without: one
INSERT INTO thread_memberships (post_id, user_id, last_updated) VALUES (?, ?, ?);

-- name: a user has read a thread
-- from: mattermost, thread_store.go, MarkAsRead
-- args: 1714550000200, 1033, 5
-- with: one
-- without: one
UPDATE thread_memberships SET last_viewed = ?, unread_mentions = 0 WHERE post_id = ? AND user_id = ?;

-- name: who follows a thread
-- from: mattermost, thread_store.go, GetThreadFollowers
-- args: 1033
-- with: one
-- without: one
SELECT user_id FROM thread_memberships WHERE post_id = ? AND following = 1;

-- name: a file is uploaded
-- from: mattermost, file_info_store.go, Save
-- args: 4105, 1033, 9, 5, 'a.png', 'png', 1000, 1714550000000
-- with: one
-- without: one
INSERT INTO file_infos (id, post_id, channel_id, creator_id, name, extension, size, create_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: the files of a post
-- from: mattermost, file_info_store.go, GetForPost
-- args: 1033
-- with: one
-- without: scatter
SELECT * FROM file_infos WHERE post_id = ? AND delete_at = 0 ORDER BY create_at;

-- name: the files of a channel
-- from: rocket.chat, room files
-- args: 9, 50, 0
-- with: one
-- without: one
SELECT id, name, size FROM file_infos WHERE channel_id = ? AND delete_at = 0 ORDER BY create_at DESC LIMIT ? OFFSET ?;

-- name: how much is stored
-- from: mattermost, file_info_store.go, GetStorageUsage
-- with: scatter
-- without: scatter
SELECT COALESCE(SUM(size), 0) FROM file_infos WHERE delete_at = 0;

-- name: notify several users
-- from: discourse, app/services/post_alerter.rb; one INSERT for all
-- args: 1029, 5, 1, 1033, 1714550000100, 1030, 6, 1, 1033, 1714550000100, 1032, 8, 1, 1033, 1714550000100
-- with: refused
-- without: refused
-- because: the rows lie in several databases; insert user by user, or let transactions span databases with sharding.Transactions, Atomic or BestEffort
INSERT INTO notifications (id, user_id, notification_type, post_id, create_at) VALUES (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?);

-- name: notify a user
-- from: discourse, app/models/notification.rb; GORM Create
-- args: 2053, 5, 2, 1033, '{}', 1714550000100
-- with: one
-- without: one
INSERT INTO `notifications` (`id`,`user_id`,`notification_type`,`post_id`,`data`,`create_at`) VALUES (?,?,?,?,?,?);

-- name: the notifications of a user
-- from: discourse, app/models/notification.rb, recent_report
-- args: 5, 30
-- with: one
-- without: one
SELECT * FROM notifications WHERE user_id = ? ORDER BY is_read, create_at DESC LIMIT ?;

-- name: unread notifications by kind
-- from: discourse, app/models/user.rb, grouped_unread_notifications
-- args: 5
-- with: one
-- without: one
SELECT notification_type, COUNT(*) FROM notifications WHERE user_id = ? AND is_read = 0 GROUP BY notification_type;

-- name: read all notifications
-- from: discourse, notifications mark_read
-- args: 5
-- with: one
-- without: one
UPDATE notifications SET is_read = 1 WHERE user_id = ? AND is_read = 0;

-- name: read one notification
-- from: discourse, notifications mark_read of one id
-- args: 2053, 5
-- with: one
-- without: one
UPDATE notifications SET is_read = 1 WHERE id = ? AND user_id = ?;

-- name: mark messages as read
-- from: zulip, zerver/actions/message_flags.py; a bit mask
-- args: 1, 5, 1033, 2057
-- with: one
-- without: one
UPDATE user_messages SET flags = flags | ? WHERE user_id = ? AND message_id IN (?, ?);

-- name: how many messages are unread
-- from: zulip, unread counts
-- args: 5
-- with: one
-- without: one
SELECT COUNT(*) FROM user_messages WHERE user_id = ? AND (flags & 1) = 0;

-- name: the unread messages of a user
-- from: zulip, zerver/lib/narrow.py, the join of UserMessage and Message
-- args: 5, 100
-- with: refused
-- without: refused
-- because: user_messages is sharded by user and posts by channel; read the message_ids first and the posts by them
SELECT um.message_id, um.flags, p.message FROM user_messages um JOIN posts p ON p.id = um.message_id WHERE um.user_id = ? AND (um.flags & 1) = 0 ORDER BY um.message_id LIMIT ?;

-- name: a job begins, if nobody else took it
-- from: mattermost, job_store.go, UpdateStatusOptimistically
-- args: 'in_progress', 1714550000000, 1714550000000, 1, 'pending'
-- with: home
-- without: home
UPDATE jobs SET status = ?, start_at = ?, last_activity_at = ? WHERE id = ? AND status = ?;

-- name: jobs of some kinds, a page
-- from: mattermost, job_store.go, GetAllByTypesPage
-- args: 'export', 'import', 20, 0
-- with: home
-- without: home
SELECT * FROM jobs WHERE type IN (?, ?) ORDER BY create_at DESC LIMIT ? OFFSET ?;

-- name: delete old jobs
-- from: mattermost, job_store.go, Cleanup
-- args: 1700000000000, 'in_progress', 'pending', 1000
-- dialect: mysql
-- with: home
-- without: home
DELETE FROM jobs WHERE create_at < ? AND (status <> ? AND status <> ?) ORDER BY create_at ASC LIMIT ?;

-- name: the webhooks of a user
-- from: mattermost, webhook_store.go, GetIncomingListByUser
-- args: 5
-- with: home
-- without: home
SELECT w.*, u.username FROM webhooks w JOIN users u ON u.id = w.user_id WHERE w.user_id = ? AND w.delete_at = 0;

-- name: write an audit
-- from: mattermost, audit_store.go, Save
-- args: 1, 1714550000000, 5, '/login', '10.0.0.1'
-- with: home
-- without: home
INSERT INTO audits (id, create_at, user_id, action, ip_address) VALUES (?, ?, ?, ?, ?);
