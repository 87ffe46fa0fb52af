import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { ACCOUNT, configWith, KEY, LINE, MODEL } from './config.ts'

/** Names that every object seems to have. */
const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']

/** An object with a member of its own of that name. */
const own = (name: string, value: unknown, more: object = {}): Record<string, unknown> =>
  Object.fromEntries([...Object.entries(more), [name, value]])

/** Where a config has names, the config, and where the loaded one has them. */
const PLACES: [place: string, make: (name: string) => Record<string, unknown>][] = [
  ['accounts[0].id', (name) => ({ accounts: [{ ...ACCOUNT, id: name }], keys: [{ ...KEY, account: name }] })],
  ['keys[0].id', (name) => ({ keys: [{ ...KEY, id: name }] })],
  ['models[0].id', (name) => ({ models: [MODEL, { ...MODEL, id: name }] })],
  [
    'lines[0].id',
    (name) => ({ lines: [{ ...LINE, id: name }], passThrough: [{ path: '/v1/x', lines: [name] }] }),
  ],
  ['lines[0].provider', (name) => ({ lines: [{ ...LINE, provider: name }] })],
  ['lines[0].region', (name) => ({ lines: [{ ...LINE, region: name }] })],
  ['keys[0].tags', (name) => ({ keys: [{ ...KEY, tags: own(name, 'v') }] })],
  ['lines[0].models', (name) => ({ lines: [{ ...LINE, models: own(name, 'u', LINE.models) }] })],
  ['lines[0].headers', (name) => ({ lines: [{ ...LINE, headers: own(name, 'v') }] })],
  ['lines[0].path', (name) => ({ lines: [{ ...LINE, path: own(name, '/v') }] })],
  ['lines[0].query', (name) => ({ lines: [{ ...LINE, query: own(name, 'v') }] })],

  ['lines[0]', (name) => ({ lines: [own(name, {}, LINE)] })],
  ['models[0].price', (name) => ({ models: [{ ...MODEL, price: own(name, '1') }] })],
  ['', (name) => own(name, {})],
]

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_name, member) =>
    member instanceof Map || member instanceof Set
      ? [...member]
      : typeof member === 'bigint'
        ? `${member}`
        : member,
  ).toLowerCase()

describe('a name that every object inherits', () => {
  for (const [place, make] of PLACES)
    for (const name of NAMES)
      it(`is kept, or refused: ${name} in ${place || 'the config'}`, () => {
        let loaded: ReturnType<typeof loadConfig>
        try {
          loaded = loadConfig(configWith(make(name)))
        } catch (error) {
          assert.ok(error instanceof ConfigError)
          const named = error.faults.filter((fault) => fault.includes(name))
          assert.equal(named.length, 1, error.message)
          assert.ok(named[0]?.startsWith(place.replace('models[0].id', 'models[')), error.message)
          return
        }
        const { resolved: _, ...rest } = loaded
        assert.ok(textOf({ ...rest, models: [...rest.catalog.models] }).includes(name.toLowerCase()))
      })
})
