import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { MemoryTaskStore, TaskSettler } from '../../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../../lib/index.ts'
import * as sql from '../../../lib/stores/sql/index.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { CLASSES, WITHOUT_OPTIONS } from './classes.ts'
import {
  assertLine,
  assertMeantIsNamed,
  assertNamedAreTaken,
  assertTimersAreBounded,
  assertWrongIsRefused,
  faultOf,
} from './mistakes.ts'

it('the table has every public class that takes options', async () => {
  const root = new URL('../../../', import.meta.url)
  const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    exports: Record<string, { '@express-model-gateway/source'?: string } | string>
  }
  const classes = new Set<string>()
  for (const [subpath, target] of Object.entries(exports)) {
    const source = typeof target === 'object' ? target['@express-model-gateway/source'] : undefined
    if (!source?.startsWith('./lib/') || subpath === './package.json') continue
    const names = Object.entries(await import(new URL(source, root).href))
    for (const [name, value] of names)
      if (typeof value === 'function' && /^[A-Z]/.test(name)) classes.add(name)
  }
  const known = new Set([...Object.keys(CLASSES), ...WITHOUT_OPTIONS])
  const onlyDatabase = Object.keys(sql).filter((name) => /^Sql[A-Z]/.test(name))
  assert.deepEqual(
    [...classes].filter((name) => !known.has(name) && !onlyDatabase.includes(name)),
    [],
  )
})

for (const [name, { make, needs, takes, takesOthers }] of Object.entries(CLASSES)) {
  describe(`new ${name}`, () => {
    it('accepts its required options, and each optional one', () => {
      make(needs)
      for (const [option, value] of Object.entries(takes))
        assert.equal(
          faultOf(() => make({ ...needs, [option]: value })),
          undefined,
          option,
        )
    })

    it('suggests the intended name for an unknown option', () => {
      const error = faultOf(() => make({ ...needs, unheardOf: 1 }))
      if (takesOthers) assert.equal(error, undefined)
      else assertLine(error, `${name}: there is no option "unheardOf"`, 'an unknown option')
      assertMeantIsNamed(name, Object.keys(takes), (misspelt) => make({ ...needs, ...misspelt }))
    })

    it('refuses a time that no timer can wait', () =>
      assertTimersAreBounded(Object.keys(takes), (given) => make({ ...needs, ...given })))

    it('reports an option of a wrong type', () => {
      for (const option of Object.keys(takes))
        assertWrongIsRefused(
          option,
          (value) => make({ ...needs, [option]: value }),
          (error, what) => assertLine(error, `${name}: "${option}" must be `, what),
        )
    })

    it('takes each of the values that an option names', () => {
      for (const option of Object.keys(takes))
        assertNamedAreTaken(option, (value) => make({ ...needs, [option]: value }))
    })

    it('requires an object with its required options', () => {
      for (const value of [null, 'x', 7, [], true])
        assertLine(
          faultOf(() => make(value)),
          `${name}: its options must be an object`,
          String(value),
        )
      const missing = faultOf(() => make(undefined))
      const needed = Object.keys(needs)[0]
      if (needed === undefined) assert.equal(missing, undefined)
      else assertLine(missing, `${name}: "${needed}" must be `, 'no options')
    })
  })
}

describe('a store on a database', () => {
  for (const [name, Class] of Object.entries(sql)) {
    if (!/^Sql[A-Z]/.test(name)) continue
    it(`reports that ${name} was given no database, such as one that is still being opened`, () => {
      const make = (db: unknown): unknown => Reflect.construct(Class as new () => unknown, [db])
      for (const [db, kind] of [
        [undefined, 'undefined'],
        [Promise.resolve({}), 'a promise: await it first'],
        ['sqlite:gateway.db', 'a string'],
        [{}, 'an object'],
      ] as const) {
        const line = `${name}: its first argument must be a database, as openDatabase returns it, not ${kind}`
        assertLine(
          faultOf(() => make(db)),
          line,
          kind,
        )
      }
    })
  }

  it('reports invalid arguments of openDatabase', async () => {
    const open = (url: unknown, options?: unknown): Promise<unknown> =>
      openDatabase(url as string, options as object).then(
        () => undefined,
        (error: unknown) => error,
      )
    const line = async (promise: Promise<unknown>, begin: string): Promise<void> =>
      assertLine((await promise) as Error, begin, begin)
    await line(open(undefined), 'openDatabase: its URL must be a string')
    await line(open('sqlite:x.db', 7), 'openDatabase: its options must be an object')
    await line(
      open('sqlite:x.db', { poolsize: 1 }),
      'openDatabase: there is no option "poolsize"; did you mean "poolSize"?',
    )
    await line(
      open('sqlite:x.db', { poolSize: 0 }),
      'openDatabase: "poolSize" must be a whole number from 1 on',
    )
    await line(open('sqlite:x.db', { readOnly: 'yes' }), 'openDatabase: "readOnly" must be true or false')
  })
})

it('a settler of tasks reports invalid options before it polls', () => {
  const needs = { store: new MemoryTaskStore({ money: new MemoryLedger().holds }), clients: () => undefined }
  const fault = (options: object): Error | undefined =>
    faultOf(() => Reflect.construct(TaskSettler, [{ ...needs, ...options }]))
  assertLine(fault({ store: undefined }), 'TaskSettler: "store" must be a TaskStore', 'no store')
  assertLine(fault({ timeoutMs: 0 }), 'TaskSettler: "timeoutMs" must be a positive whole number', 'timeoutMs')
  const misspelt = 'TaskSettler: there is no option "concurency"; did you mean "concurrency"?'
  assertLine(fault({ concurency: 1 }), misspelt, 'concurency')
})

it('a ledger accepts a whole config', () => {
  assert.ok(new MemoryLedger({ region: 'eu', accounts: [], keys: [], routing: {}, catalog: {} } as object))
})
