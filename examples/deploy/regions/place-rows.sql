-- Once, when the tables exist. CockroachDB keeps a row of these tables in the region where it was inserted: what a call writes
-- stays in the region that served it.
alter table calls set locality regional by row;
alter table call_labels set locality regional by row;
alter table answers set locality regional by row;
alter table idempotency set locality regional by row;
alter table upstream_resources set locality regional by row;
alter table charges set locality regional by row;
alter table voids set locality regional by row;
alter table holds set locality regional by row;
alter table leases set locality regional by row;
alter table usage set locality regional by row;
alter table video_tasks set locality regional by row;

-- The money of an account is in one region. A new wallet is where its account was created.
alter table wallets set locality regional by row;
alter table deposits set locality regional by row;

-- Every call reads these, in every region; a change takes longer.
alter table accounts set locality global;
alter table keys set locality global;
alter table budgets set locality global;
alter table line_switches set locality global;

-- The account first-us is used in the region us. Do the same for accounts of yours.
update wallets set crdb_region = 'us' where id = 'account:first-us' or id = 'key:key_first_us';
