import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hashSecret } from '../../../lib/core/catalog/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { type KeyRecord, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import type { MemoryKeyDirectory } from '../../../lib/middleware/authenticate/memory-key-directory.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { beginSession, SESSION_KINDS, sessionGateway } from '../../support/session-gateway.ts'
import { endlessUpstream } from '../../support/session-upstream.ts'
import { until } from '../../support/until.ts'

type Change = (keys: MemoryKeyDirectory, hash: string, record: KeyRecord) => void

/** How a key ends, and the code that its calls end with. */
const ENDS: Readonly<Record<string, readonly [code: string, change: Change]>> = {
  deleted: ['invalid_credential', (keys, hash) => keys.delete(hash)],
  rotated: [
    'invalid_credential',
    (keys, hash, record) => {
      keys.delete(hash)
      keys.set(hashSecret(`new-${hash}`), record)
    },
  ],
  disabled: ['key_disabled', (keys, hash, record) => keys.set(hash, { ...record, enabled: false })],
  expired: [
    'key_expired',
    (keys, hash, record) => keys.set(hash, { ...record, expiresAt: Date.now() + 500 }),
  ],
  'not for this address': [
    'ip_not_allowed',
    (keys, hash, record) => keys.set(hash, { ...record, allowIps: ['192.0.2.1'] }),
  ],
  'of a suspended account': [
    'key_disabled',
    (keys, _hash, { account }) => keys.setAccount({ ...account, suspended: true }),
  ],
  'not for this region': [
    'region_denied',
    (keys, _hash, { account }) => keys.setAccount({ ...account, regions: ['elsewhere'] }),
  ],
}
const CASES = SESSION_KINDS.flatMap((kind) =>
  Object.keys(ENDS).map((end) => ({ kind, end, id: `${kind}-${end}`.replaceAll(' ', '-') })),
)

describe('a call that takes long ends with its key', { concurrency: true }, async () => {
  const cleanUp = cleaningUp()
  const upstream = await endlessUpstream(cleanUp)
  let directory: MemoryKeyDirectory | undefined
  let questions = 0
  const ids = [...CASES.map(({ id }) => id), ...SESSION_KINDS.map((kind) => `bystander-${kind}`)]
  const gateway = await sessionGateway(cleanUp, {
    upstream: upstream.url,
    config: {
      accounts: ids.map((id) => ({ id, limits: { concurrency: 1 } })),
      keys: ids.flatMap((id) => [
        { id, account: id, secret: `sk-${id}` },
        { id: `${id}-other`, account: id, secret: `sk-other-${id}` },
      ]),
    },
    keys(config) {
      const keys = memoryKeyDirectory(config)
      directory = keys
      return {
        find: (hash) => keys.find(hash),
        async findAll(hashes) {
          questions++
          return new Map(
            hashes.flatMap((hash) => [keys.find(hash)].flatMap((record) => (record ? [[hash, record]] : []))),
          )
        },
      }
    },
  })
  const keys = directory as unknown as MemoryKeyDirectory
  const startedAt = performance.now()
  const bystanders = await Promise.all(
    SESSION_KINDS.map((kind) => beginSession(gateway, kind, `sk-bystander-${kind}`)),
  )

  for (const { kind, end, id } of CASES) {
    it(`${kind}: ${end}`, async () => {
      const [code, change] = ENDS[end] as readonly [string, Change]
      const session = await beginSession(gateway, kind, `sk-${id}`)
      const hash = hashSecret(`sk-${id}`)
      change(keys, hash, keys.find(hash) as KeyRecord)
      const changedAt = performance.now()
      const told = await session.ended()
      assert.ok(performance.now() - changedAt < 5000)
      if (kind === 'websocket') assert.equal(told, `1008 ${code}`)
      else if (kind !== 'download') assert.match(told, new RegExp(`"code":"${code}"`))
      if (kind === 'stream') assert.doesNotMatch(told, /\r\n0\r\n\r\n$|\[DONE\]/, 'no regular end')
      if (kind === 'upload') assert.match(told, /^HTTP\/1\.1 40[13] /)
      session.leave()
      await until(
        () => ![...gateway.open].some(({ principal }) => principal?.keyId === id),
        'the end of the call',
      )

      const [entry] = await gateway.entriesOf(id)
      assert.equal(entry?.error_code, code)
      assert.equal(entry?.outcome, kind === 'upload' ? 'failed' : 'interrupted')
      const charged = { stream: /^0\.00/, download: /^0\.01$/, upload: /^null$/, websocket: /^0\.01$/ }[kind]
      assert.match(String(entry?.billing?.charged), charged)
      const [wallet] = await gateway.ledger.wallets([accountWallet(id)])
      if (kind !== 'upload') assert.ok((wallet?.spent ?? 0n) > 0n, 'what was produced is charged')
      // The slot is free.
      if (end === 'not for this region' || end === 'of a suspended account') return
      const next = await beginSession(gateway, 'stream', `sk-other-${id}`)
      next.leave()
    })
  }

  it('and the calls of all others go on, for one question every other second', async () => {
    await until(() => performance.now() - startedAt > 4500)
    assert.deepEqual(
      bystanders.map(({ over }) => over),
      [false, false, false, false],
    )
    const socket = bystanders.at(-1)?.socket
    socket?.send('still there?')
    await new Promise((resolve) => socket?.once('message', resolve))
    const most = (performance.now() - startedAt) / 2000 + 1
    assert.ok(questions > 0 && questions <= most, `${questions} questions`)
    for (const each of bystanders) each.leave()
    await until(() => gateway.open.size === 0, 'the end of all')
    assert.deepEqual(
      gateway.logged.filter(({ level }) => level === 'error'),
      [],
    )
  })
})
