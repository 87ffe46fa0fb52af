import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { openDatabase, undoMigrations } from '../../../../lib/stores/sql/index.ts'

const URLS = [
  'postgres://gateway:hunter2@db:99999/calls',
  'postgres://gateway:hunter2@[db/calls',
  // The second server is not needed yet.
  'postgres://gateway:hunter2@db:5432,other:99999/calls',
]
const WAYS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  opened: (url) => openDatabase(url),
  'taken back to an older version': (url) => undoMigrations(url, '0001-initial'),
}

describe('a URL of Postgres that is not valid', () => {
  for (const [how, open] of Object.entries(WAYS))
    it(`is named without its password where a database is ${how}`, async () => {
      for (const url of URLS) {
        const error: unknown = await open(url).catch((thrown: unknown) => thrown)
        assert.ok(error instanceof TypeError, inspect(error))
        assert.equal(error.message, 'the postgres:// URL is not valid')
        assert.doesNotMatch(inspect(error, { depth: 5, showHidden: true }), /hunter2/)
      }
    })
})
