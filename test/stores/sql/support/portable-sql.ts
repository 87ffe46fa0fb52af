/*
 * The constructs of Postgres that databases with its protocol lack: CockroachDB, YugabyteDB, Aurora DSQL and others.
 */
const LACKING: readonly (readonly [what: string, where: RegExp])[] = [
  ['advisory locks', /\badvisory/],
  ['locks of tables', /\block table\b|\block \w+ in\b/],
  ['system columns', /\b(ctid|xmin|xmax|cmin|cmax|tableoid)\b/],
  ['the locks of the server', /\bpg_locks\b/],
  ['inheritance and partitions', /\bpg_inherits\b|\binherits\b|\bpartition (by|of)\b|\battach partition\b/],
  ['copies of tables', /\blike "?\w+"? including\b/],
  ['storage parameters', /\bset storage\b|\bwith \((fillfactor|autovacuum)/],
  ['temporary and unlogged tables', /\b(temp|temporary|unlogged)\b/],
  ['notifications', /\b(listen|unlisten|notify)\b|\bpg_notify\b/],
  ['triggers and rules', /\bcreate (event )?(constraint )?(trigger|rule)\b/],
  [
    'functions and procedures',
    /\bcreate (or replace )?(function|procedure)\b|\bplpgsql\b|^\s*do \$|^\s*call\b/,
  ],
  ['deferred constraints', /\bdeferr(able|ed)\b/],
  ['exclusion constraints', /\bexclude using\b/],
  ['changed types of columns', /\balter( column)? \w+ (set data )?type\b|\balter type\b/],
  ['extensions, domains and operators', /\bcreate (extension|domain|operator|aggregate|cast|collation)\b/],
  ['indexes of other kinds', /\busing (gist|gin|brin|hash|spgist)\b/],
  ['cursors', /\b(declare \w+ (no scroll )?cursor|fetch (next|forward|all)|where current of)\b/],
  ['two-phase commits', /\bprepare transaction\b/],
  ['physical maintenance', /\b(vacuum|cluster|reindex|tablesample|reltuples|pg_relation_size)\b/],
  ['sequences', /\b(create sequence|nextval|setval|currval|serial|bigserial|generated \w+ as identity)\b/],
  ['types of large objects, XML and ranges', /\b(lo_\w+|xml\w*|int[48]range|tsrange|daterange)\b/],
  ['merge', /^\s*merge into\b/],
]

/** Returns what statements have of that: its name, and the statement. Texts within quotes are no SQL. */
export function notPortable(statements: Iterable<string>): (readonly [what: string, statement: string])[] {
  // Some are sent together.
  const single = [...statements].flatMap((text) => text.split(/;\n/))
  return single.flatMap((statement) => {
    const words = statement.toLowerCase().replaceAll(/'[^']*'/g, "''")
    const lacking = LACKING.filter(([, where]) => where.test(words)).map(([what]) => what)
    if (changesTwice(words)) lacking.push('two changes of a table in a statement')
    return lacking.map((what) => [what, statement] as const)
  })
}

/** Whether a statement changes a table in two of its parts. */
function changesTwice(words: string): boolean {
  const changes = words.matchAll(/\b(?:insert into|(?<!for |key |do )update|delete from) "?(\w+)"?/g)
  const tables = Array.from(changes, ([, table]) => table)
  return new Set(tables).size < tables.length
}
