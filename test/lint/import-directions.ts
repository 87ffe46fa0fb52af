/**
 * Checks that imports go one way, and prints a line for each that does not. Part of `npm run lint`; circles are found by
 * Biome.
 */

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const CORE = ['core/**']

/** The rooms of `lib` whose files a room may import beside its own. The first room that matches counts. */
const MAY_IMPORT: readonly (readonly [room: string, rooms: readonly string[]])[] = [
  ['index.ts', ['**']],
  ['client', []],
  ['core/errors', []],
  ['core/fair-queue', []],
  ['core/timing', []],
  ['core/content-encoding', []],
  ['core/json', []],
  ['core/options', ['core/call', 'core/catalog', 'core/timing']],
  ['core/client-address', []],
  ['core/protocols', ['core/errors']],
  ['core/catalog', ['core/errors', 'core/json', 'core/protocols']],
  ['core/config', ['core/json', 'core/options', 'core/catalog']],
  ['core/operations', ['core/errors', 'core/json', 'core/protocols', 'core/catalog']],
  ['core/translate', ['core/errors', 'core/json', 'core/protocols', 'core/catalog', 'core/operations']],
  [
    'core/call',
    ['core/errors', 'core/json', 'core/client-address', 'core/protocols', 'core/catalog', 'core/operations'],
  ],
  [
    'core/upstream-resources',
    [
      'core/errors',
      'core/fair-queue',
      'core/operations',
      'core/options',
      'core/call',
      'core/store-guard',
      'core/timing',
    ],
  ],
  ['core/memory', ['core/errors', 'core/json', 'core/call']],
  ['core/store-guard', ['core/call', 'core/options', 'core/timing']],
  ['core/usage', ['core/catalog', 'core/call', 'core/fair-queue']],
  ['core/call-store', ['core/call', 'core/catalog', 'core/fair-queue', 'core/options', 'core/usage']],
  ['core/public-address', ['core/timing']],
  ['core/key-directory', ['core/call', 'core/catalog', 'core/config']],
  ['core/limit-store', ['core/call', 'core/options', 'core/store-guard']],
  ['core/tickets', ['core/call', 'core/change-log']],
  [
    'core/*',
    [
      'core/errors',
      'core/fair-queue',
      'core/json',
      'core/options',
      'core/protocols',
      'core/catalog',
      'core/operations',
      'core/call',
    ],
  ],
  ['ledger', CORE],
  ['routing', CORE],
  ['middleware/*', [...CORE, 'ledger', 'routing']],
  ['endpoints/*', [...CORE, 'ledger', 'routing']],
  ['management', [...CORE, 'ledger', 'endpoints/*']],
  ['stores/*', [...CORE, 'ledger', 'routing', 'management']],
]

/** Folders that group rooms; every other folder of `lib` is a room. */
const GROUPS = ['core', 'middleware', 'endpoints', 'stores']

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g

/** An import that runs: it loads all that `node:http` has, which takes longer than a middleware. */
const RUNS_HTTP = /\bimport\s+(?!type\b)[^']*?\bfrom\s+'node:http'/

const faults: string[] = []

for (const file of globSync('lib/**/*.ts')) {
  const own = roomOf(file)
  const rule = MAY_IMPORT.find(([room]) => matches(own, room))
  if (!rule) faults.push(`${file}: the room "${own}" has no rule in test/lint/import-directions.ts`)
  if (RUNS_HTTP.test(readFileSync(file, 'utf8')))
    faults.push(
      `${file}: imports node:http; take http from lib/core/call/node-http.ts, and only types from there`,
    )
  for (const target of importsOf(file)) {
    if (target.startsWith('express-model-gateway')) {
      faults.push(`${file}: imports ${target}; files of lib import one another by relative path`)
    } else if (target.startsWith('.')) {
      const other = roomOf(normalize(join(dirname(file), target)))
      if (other === own || rule?.[1].some((room) => matches(other, room))) continue
      faults.push(`${file}: imports ${target}, and ${own} may not import ${other}`)
    }
  }
}

for (const file of globSync('examples/**/*.ts')) {
  for (const target of importsOf(file)) {
    if (!target.startsWith('.')) continue
    if (normalize(join(dirname(file), target)).startsWith('lib/')) {
      faults.push(`${file}: imports ${target}; examples import the package by its name`)
    }
  }
}

if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exitCode = 1
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((found) => String(found[1]))
}

function roomOf(file: string): string {
  const [, first = '', second = ''] = file.split('/')
  return GROUPS.includes(first) ? `${first}/${second}` : first
}

/** Returns whether a room is one that a pattern names: itself, all of a group (`*`), or all (`**`). */
function matches(room: string, pattern: string): boolean {
  if (pattern === '**') return true
  const group = /^(.+)\/\*\*?$/.exec(pattern)
  return group ? room.startsWith(`${group[1]}/`) : room === pattern
}
