import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noAnswerReason } from '../../../lib/core/errors/index.ts'

/** The files of the installed packages that speak to a store, from which an error can reach a request. */
const SOURCES: Readonly<Record<string, string>> = {
  pg: 'lib/**/*.js',
  'pg-pool': '*.js',
  'pg-protocol': 'dist/{parser,serializer,messages}.js',
  ioredis: 'built/**/*.js',
  kysely: 'dist/{driver/runtime-driver,dialect/postgres/postgres-driver}.js',
}

/** The messages there that report a mistake of the program, or a broken server, and not that a server is away. */
const MISTAKES: readonly RegExp[] = [
  // pg: wrong arguments, and replies in an order that no server sends.
  /^Client (?:has already been connected|was passed a null)/,
  /^(?:Password must be a string|callback is not a function|A query must have|Query values must be)/,
  /^(?:Prepared statements must be unique|circular reference detected|Received unexpected \w+ message)/,
  /not supported in pipeline mode$|^sslnegotiation=|^invalid sslnegotiation|^unsupported sslnegotiation/i,
  /^(?:(?:first|second) argument must be a Buffer|Buffers? )/,
  // pg-pool and pg-protocol.
  /^(?:Called end on pool more than once|Passing a function as the first parameter|Release called on client)/,
  /^(?:unexpected condition|Binary mode not supported yet|Unknown authenticationOk message type)/,
  // ioredis: wrong options and arguments, and commands that a connection in another mode does not take.
  /^(?:Redis is already connecting\/connected|Invalid |Requires |himportFieldsets |Each HIMPORT |Duplicate HIMPORT)/,
  /^(?:The "resp3" replyMapping|All (?:the )?keys in |Pipeline cannot be used|`startupNodes` should|Possible CROSSSLOT)/,
  /^(?:Connection in (?:subscriber|monitoring) mode|Connection is in monitoring mode|Sharded subscriber )/,
  /^(?:Unknown RESP type|Private (?:method|accessor)|Cannot (?:read|write) private)/,
  /^"sendCommand" is not /,
  // Parts of other errors of ioredis, and an error in the sample of a comment.
  /^(?:timeout|c)$/,
  // Kysely.
  /^(?:`cursor` is not present|Postgres connection has been discarded|The `\w+` method is not supported)/,
]

/** The messages that come with a code, by which they are known. */
const CODES: Readonly<Record<string, string>> = { 'connect ETIMEDOUT': 'ETIMEDOUT' }

/** Returns the messages of the errors that a package creates, each with 1 in place of its variables. */
function messagesOf(name: string): string[] {
  const root = packageFolder(name)
  const sources = globSync(SOURCES[name] as string, { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  )
  const created =
    /(?:new [\w.]*Error\(|(?:_MSG|errorMsg|defaultMessage) = )\s*(?:\w[^'"`;(]*\? *)?(['"`])(.*?)(?<!\\)\1/gs
  return [
    ...new Set(
      sources.flatMap((source) => [...source.matchAll(created)].map(([, , text = '']) => worded(text))),
    ),
  ]
}

function worded(literal: string): string {
  return literal.replace(/\$\{[^}]*\}/g, '1').replace(/\\(.)/g, '$1')
}

function packageFolder(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(name)))
  while (JSON.parse(contentsOf(join(folder, 'package.json'))).name !== name) folder = dirname(folder)
  return folder
}

function contentsOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '{}'
  }
}

for (const name of Object.keys(SOURCES)) {
  it(`every error that ${name} creates means that a store gave no answer, or is a known mistake`, () => {
    const messages = messagesOf(name)
    assert.ok(messages.length > 0)
    for (const message of messages) {
      const isMistake = MISTAKES.some((mistake) => mistake.test(message))
      const error = Object.assign(new Error(message), { code: CODES[message] })
      assert.equal(noAnswerReason(error), isMistake ? undefined : message, `${name}: ${message}`)
    }
  })
}

it('each known mistake still exists in an installed package', () => {
  const messages = Object.keys(SOURCES).flatMap(messagesOf)
  for (const mistake of MISTAKES)
    assert.ok(
      messages.some((message) => mistake.test(message)),
      `${mistake}`,
    )
})

describe('means that a store gave no answer:', () => {
  /** Of what Postgres, and databases with its protocol, answer. */
  const byClass: Readonly<Record<string, readonly string[]>> = {
    'no connection': ['08000', '08001', '08003', '08004', '08006', '08007', '08P01'],
    'no login': ['28000', '28P01', '3D000'],
    'no room, no connection left': ['53000', '53100', '53200', '53300', '53400'],
    'going down, or not up yet': ['57000', '57014', '57P01', '57P02', '57P03', '57P04', '57P05'],
    'the system failed': ['58000', '58030', '58C00'],
    'a standby': ['25006'],
    'ended, as it was idle or took long': ['25P03', '25P04'],
    'others came first': ['40000', '40001', '40003', '40P01', '55P03'],
  }
  for (const [what, codes] of Object.entries(byClass))
    it(`Postgres: ${what}`, () => {
      for (const code of codes)
        assert.equal(noAnswerReason(Object.assign(new Error('x'), { code })), 'x', code)
    })

  it('Redis, with the first word of its reply', () => {
    const replies = [
      'LOADING Redis is loading the dataset in memory',
      "READONLY You can't write against a read only replica.",
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
      'CLUSTERDOWN The cluster is down',
      'TRYAGAIN Multiple keys request during rehashing of slot',
      'MOVED 3999 127.0.0.1:6381',
      'ASK 3999 127.0.0.1:6381',
      'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
      'MISCONF Redis is configured to save RDB snapshots, but is currently unable to persist to disk.',
      'NOREPLICAS Not enough good replicas to write.',
      "OOM command not allowed when used memory > 'maxmemory'.",
      'NOAUTH Authentication required.',
      'WRONGPASS invalid username-password pair or user is disabled.',
      "NOPERM User default has no permissions to run the 'incrby' command",
      'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
      'DENIED Redis is running in protected mode',
      'ERR max number of clients reached',
    ]
    for (const reply of replies) {
      assert.equal(noAnswerReason(new Error(reply)), reply)
      const discarded = new Error('EXECABORT Transaction discarded because of previous errors.')
      const previousErrors = [new Error(reply)]
      assert.equal(noAnswerReason(Object.assign(discarded, { previousErrors })), discarded.message)
    }
  })
})

describe('is a mistake, and keeps its stack:', () => {
  const mistakes: readonly [string, unknown][] = [
    ['a fault of a statement', Object.assign(new Error('column "x" does not exist'), { code: '42703' })],
    ['a violated constraint', Object.assign(new Error('duplicate key'), { code: '23505' })],
    ['a fault inside Postgres', Object.assign(new Error('unexpected'), { code: 'XX000' })],
    ['a reply about a key', new Error('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['a reply about a script', new Error('NOSCRIPT No matching script. Please use EVAL.')],
    [
      'a transaction with a fault',
      Object.assign(new Error('EXECABORT'), { previousErrors: [new Error('ERR x')] }),
    ],
    ['a transaction without a reason', Object.assign(new Error('EXECABORT'), { previousErrors: [] })],
    ['a word that only begins so', new Error('BUSYBODY is undefined')],
    ['a fault of the program', new TypeError('x is not a function')],
    ['a text', 'LOADING'],
    ['nothing', undefined],
  ]
  for (const [what, error] of mistakes) it(what, () => assert.equal(noAnswerReason(error), undefined))
})
