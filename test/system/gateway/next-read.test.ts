import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Client } from 'undici'
import { cleaningUp } from '../../support/clean-up.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'

/** Connections at once: each is one worker's for good, and the chance that one worker has none of them is 1 in 128. */
const CONNECTIONS = 8
const CHANGES = 12

describe('a change that one worker has answered', () => {
  const cleanUp = cleaningUp()
  let server: FileGateway
  let clients: Client[]
  before(async () => {
    server = await startFileGateway(cleanUp, { WORKERS: '2' })
    clients = Array.from({ length: CONNECTIONS }, () => new Client(server.gateway.url))
    cleanUp.after(async () => void (await Promise.all(clients.map((client) => client.destroy()))))
  })

  async function ask<T>(
    client: Client,
    method: 'GET' | 'PATCH' | 'POST' | 'DELETE',
    path: string,
    body?: object,
  ) {
    const headers = { authorization: `Bearer ${server.env.ADMIN_TOKEN}`, 'content-type': 'application/json' }
    const sent = body ? { body: JSON.stringify(body) } : {}
    const answer = await client.request({ method, path: `/admin${path}`, headers, ...sent })
    const text = await answer.body.text()
    const known = answer.statusCode < 300 || answer.statusCode === 404
    assert.ok(known, `${method} ${path}: ${answer.statusCode} ${text}`)
    return (text === '' ? {} : JSON.parse(text)) as T
  }
  const each = <T>(path: string) => Promise.all(clients.map((client) => ask<T>(client, 'GET', path)))

  it('is in the next read of any worker: the switch of a line', async () => {
    for (let i = 0; i < CHANGES; i++) {
      const enabled = i % 2 === 1
      await ask(clients[i % CONNECTIONS] as Client, 'PATCH', '/lines/one', { enabled })
      const seen = await each<{ data: { id: string; enabled: boolean }[] }>('/lines')
      assert.deepEqual(
        seen.map(({ data }) => data.find(({ id }) => id === 'one')?.enabled),
        Array(CONNECTIONS).fill(enabled),
        `change ${i}`,
      )
    }
  })

  it('is in the next read of any worker: accounts, keys, money, and the record of changes', async () => {
    for (let i = 0; i < CHANGES / 3; i++) {
      const writer = clients[i % CONNECTIONS] as Client
      const id = `made-${i}`
      await ask(writer, 'POST', '/accounts', { id, name: 'first' })
      await ask(writer, 'PATCH', `/accounts/${id}`, { name: 'second' })
      await ask(writer, 'POST', `/accounts/${id}/deposits`, { amount: '3', reference: 'r' })
      for (const account of await each<{ name: string; deposited: string }>(`/accounts/${id}`))
        assert.deepEqual([account.name, Number(account.deposited)], ['second', 3])
      const { id: key } = await ask<{ id: string }>(writer, 'POST', '/keys', { account: id })
      for (const found of await each<{ account: string }>(`/keys/${key}`)) assert.equal(found.account, id)
      await ask(writer, 'PATCH', `/keys/${key}`, { enabled: false })
      for (const found of await each<{ enabled: boolean }>(`/keys/${key}`)) assert.equal(found.enabled, false)
      for (const { data } of await each<{ data: { subject: string }[] }>('/changes?limit=20'))
        assert.ok(data.some(({ subject }) => subject === key))
      await ask(writer, 'DELETE', `/keys/${key}`)
      for (const gone of await each<{ error?: { code: string } }>(`/keys/${key}`))
        assert.equal(gone.error?.code, 'not_found')
    }
  })
})
