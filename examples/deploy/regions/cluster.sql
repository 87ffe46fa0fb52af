-- Once, before the tables are created.
create database if not exists gateway;
-- "integer" is 8 bytes long in CockroachDB. The gateway expects 4, as in Postgres.
alter role all set default_int_size = 4;
alter database gateway set primary region 'eu';
alter database gateway add region if not exists 'us';
alter database gateway add region if not exists 'witness';
