import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import { hashSecret, type KeyRecord, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { eventually } from '../../support/app-server.ts'
import { type Admission, bearer, guard } from './admission.ts'

let app: Admission | undefined
afterEach(async () => {
  await app?.close()
  app = undefined
})

/** A directory that can change, be slow and be away, and that counts who asks. */
class ScriptedDirectory {
  readonly memory = memoryKeyDirectory({
    accounts: [{ id: 'acme' }],
    keys: ['1', '2'].map((n) => ({ id: `k${n}`, account: 'acme', secret: `sk-${n}` })),
  })
  asked: string[] = []
  answer: 'later' | 'at once' | 'rejects' | 'throws' | 'never' = 'later'
  failure: Error = new Error('directory away at db-7.internal')

  find(secretHash: string): KeyRecord | undefined | Promise<KeyRecord | undefined> {
    this.asked.push(secretHash)
    if (this.answer === 'throws') throw this.failure
    if (this.answer === 'rejects') return Promise.reject(this.failure)
    if (this.answer === 'never') return new Promise(() => {})
    const record = this.memory.find(secretHash)
    return this.answer === 'later' ? new Promise((resolve) => setImmediate(resolve, record)) : record
  }

  disable(secret: string): void {
    const secretHash = hashSecret(secret)
    this.memory.set(secretHash, { ...(this.memory.find(secretHash) as KeyRecord), enabled: false })
  }
}

let directory: ScriptedDirectory
beforeEach(() => {
  directory = new ScriptedDirectory()
})

/** The monotonic clock, running on as it does, plus what a test adds. */
function clock(t: TestContext): { advance(ms: number): void } {
  const real = performance.now.bind(performance)
  let added = 0
  t.mock.method(performance, 'now', () => real() + added)
  return {
    advance(ms) {
      added += ms
    },
  }
}

const errorOf = async (key: string) => (await app!.ask(bearer(key))).error

describe('the key cache', () => {
  for (const answer of ['later', 'at once'] as const) {
    it(`asks the directory once for many requests, unknown keys included (${answer})`, async () => {
      directory.answer = answer
      app = await guard({ keys: directory })
      for (let i = 0; i < 5; i++) {
        assert.equal(await errorOf('sk-1'), undefined)
        assert.equal(await errorOf('sk-none'), 'invalid_credential')
      }
      assert.deepEqual(directory.asked, [hashSecret('sk-1'), hashSecret('sk-none')])
    })
  }

  it('shows a change within 5 s: disabled, deleted, created', async (t) => {
    const { advance } = clock(t)
    app = await guard({ keys: directory })
    assert.deepEqual([await errorOf('sk-1'), await errorOf('sk-2')], [undefined, undefined])
    assert.equal(await errorOf('sk-3'), 'invalid_credential')
    const { memory } = directory
    memory.set(hashSecret('sk-3'), memory.find(hashSecret('sk-2')) as KeyRecord)
    memory.delete(hashSecret('sk-2'))
    directory.disable('sk-1')
    advance(5000)
    assert.equal(await errorOf('sk-1'), 'key_disabled')
    assert.equal(await errorOf('sk-2'), 'invalid_credential')
    assert.equal(await errorOf('sk-3'), undefined)
  })

  it('counts an answer’s age from when it was asked for, not from when it came', async (t) => {
    const { advance } = clock(t)
    app = await guard({ keys: directory, cacheKeysMs: 1000 })
    const first = app.ask(bearer('sk-1'))
    await eventually(() => directory.asked.length === 1)
    advance(1000)
    await first
    await app.ask(bearer('sk-1'))
    assert.equal(directory.asked.length, 2)
  })

  it('asks every time where the app wants no cache', async () => {
    app = await guard({ keys: directory, cacheKeysMs: 0 })
    await errorOf('sk-1')
    directory.disable('sk-1')
    assert.equal(await errorOf('sk-1'), 'key_disabled')
    assert.equal(directory.asked.length, 2)
  })

  it('makes one look-up of many at the same time', async () => {
    let resolve: (record: KeyRecord | undefined) => void = () => {}
    let asked = 0
    const find = () => {
      asked++
      return new Promise<KeyRecord | undefined>((done) => {
        resolve = done
      })
    }
    app = await guard({ keys: { find } })
    const answers = Array.from({ length: 20 }, () => app!.ask(bearer('sk-1')))
    await eventually(() => app!.calls.length === 20)
    resolve(directory.memory.find(hashSecret('sk-1')))
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
    assert.equal(asked, 1)
    assert.equal(app.admitted, 20)
  })

  it('stays bounded under a flood of guesses, which push no key out', async () => {
    directory.answer = 'at once'
    app = await guard({ keys: directory, maxCachedKeys: 50, cacheKeysMs: 5000 })
    await errorOf('sk-1')
    for (let i = 0; i < 60; i++) await errorOf(`guess-${i}`)
    directory.asked = []
    await errorOf('sk-1')
    assert.deepEqual(directory.asked, [])
    // A tenth is kept for guesses: the last five are remembered, the others are not.
    for (let i = 59; i >= 55; i--) await errorOf(`guess-${i}`)
    assert.deepEqual(directory.asked, [])
    await errorOf('guess-54')
    assert.deepEqual(directory.asked, [hashSecret('guess-54')])
  })

  it('stays bounded under many good keys', async () => {
    directory.answer = 'at once'
    app = await guard({ keys: directory, maxCachedKeys: 1 })
    for (const key of ['sk-1', 'sk-2', 'sk-1']) assert.equal(await errorOf(key), undefined)
    assert.equal(directory.asked.length, 3)
  })
})

describe('while the directory is away', () => {
  const ways = ['rejects', 'throws', 'never'] as const
  for (const away of ways) {
    it(`the last answer stands in for a known key (${away})`, async (t) => {
      const { advance } = clock(t)
      app = await guard({ keys: directory, storeTimeoutMs: 250, staleKeysMs: 60_000 })
      directory.disable('sk-2')
      assert.deepEqual([await errorOf('sk-1'), await errorOf('sk-2')], [undefined, 'key_disabled'])
      directory.answer = away
      advance(50_000)
      assert.deepEqual([await errorOf('sk-1'), await errorOf('sk-2')], [undefined, 'key_disabled'])
      advance(20_000)
      assert.equal(await errorOf('sk-1'), 'internal_error')
      assert.equal(app.admitted, 2)
    })

    it(`a key not known is an internal_error, never a 401 (${away})`, async (t) => {
      const { advance } = clock(t)
      app = await guard({ keys: directory, storeTimeoutMs: 250 })
      assert.equal(await errorOf('sk-new'), 'invalid_credential')
      directory.answer = away
      advance(5000)
      // "No such key" was true five seconds ago; the key may have been made since.
      for (const key of ['sk-new', 'sk-1']) {
        const { status, error, text } = await app.ask(bearer(key))
        assert.deepEqual([status, error], [500, 'internal_error'])
        assert.doesNotMatch(text, /db-7|away|sk-/)
      }
      assert.equal(app.admitted, 0)
      assert.equal(app.logger.lines.length, 2)
      assert.doesNotMatch(JSON.stringify(app.logger.lines), /sk-(?:new|1)/)
      directory.answer = 'later'
      assert.equal(await errorOf('sk-1'), undefined)
    })
  }

  it('a known key waits less long than one without a cached record', async (t) => {
    const { advance } = clock(t)
    app = await guard({ keys: directory, storeTimeoutMs: 60_000 })
    assert.equal(await errorOf('sk-1'), undefined)
    directory.answer = 'never'
    advance(5000)
    assert.equal(await errorOf('sk-1'), undefined)
    assert.equal(directory.asked.length, 2)
  })

  it('a status that the directory’s own error carries is not the caller’s', async () => {
    for (const cacheKeysMs of [0, 4000]) {
      for (const answer of ['rejects', 'throws'] as const) {
        directory.answer = answer
        directory.failure = Object.assign(new Error('x'), {
          status: 401,
          expose: true,
          code: 'invalid_credential',
        })
        app = await guard({ keys: directory, cacheKeysMs })
        assert.equal(await errorOf('sk-1'), 'internal_error')
        assert.equal(app.admitted, 0)
        await app.close()
      }
    }
  })

  it('an answer that came too late for its request serves later ones, unless a newer is known', async (t) => {
    const { advance } = clock(t)
    const late: ((record: KeyRecord | undefined) => void)[] = []
    const find = () => new Promise<KeyRecord | undefined>((resolve) => late.push(resolve))
    const record = directory.memory.find(hashSecret('sk-1')) as KeyRecord
    app = await guard({ keys: { find }, storeTimeoutMs: 250 })
    assert.equal(await errorOf('sk-1'), 'internal_error')
    late[0]?.(record)
    assert.equal(await errorOf('sk-1'), undefined)
    advance(5000)
    // Two look-ups; the second is answered first, by a directory that knows of the change.
    assert.equal(await errorOf('sk-1'), undefined)
    advance(100)
    const second = app.ask(bearer('sk-1'))
    await eventually(() => late.length === 3)
    late[2]?.({ ...record, enabled: false })
    assert.equal((await second).error, 'key_disabled')
    late[1]?.(record)
    assert.equal(await errorOf('sk-1'), 'key_disabled')
    assert.equal(late.length, 3)
  })
})
