import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Request } from 'express'
import { z } from 'zod'
import { pageMembers, readQuery, readTaggedQuery } from '../../../lib/core/json-api/index.ts'
import { beginCall, errorEnvelope } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'

const SCHEMA = z.strictObject({ ...pageMembers((id) => /^[a-z]+$/.test(id)), model: z.string().optional() })
const cursor = (id: string) => Buffer.from(id).toString('base64url')

let app: AppServer
before(async () => {
  app = await serveApp((app) => {
    app.use(beginCall())
    const answering =
      (read: (req: Request) => unknown) => (req: Request, res: { json(body: unknown): void }) =>
        res.json(read(req))
    app.get(
      '/plain',
      answering((req) => readQuery(req, SCHEMA)),
    )
    app.get(
      '/tagged',
      answering((req) => readTaggedQuery(req, SCHEMA)),
    )
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
})
after(() => app.close())

async function ask(path: string): Promise<unknown> {
  const res = await fetch(`${app.url}${path}`)
  const body = await res.json()
  return res.ok ? body : `${res.status} ${envelopeIn(body).error.param}`
}

describe('the query of a list', () => {
  const rows: [query: string, read: unknown][] = [
    ['', { limit: 20 }],
    ['limit=1', { limit: 1 }],
    ['limit=100', { limit: 100 }],
    ['limit=0', '400 limit'],
    ['limit=101', '400 limit'],
    ['limit=1000', '400 limit'],
    ['limit=1.5', '400 limit'],
    ['limit=', '400 limit'],
    ['limit=2&limit=3', '400 limit'],
    [`cursor=${cursor('abc')}`, { limit: 20, cursor: 'abc' }],
    [`cursor=${cursor('a'.repeat(750))}`, { limit: 20, cursor: 'a'.repeat(750) }],
    [`cursor=${cursor('a'.repeat(751))}`, '400 cursor'],
    [`cursor=${cursor('ABC')}`, '400 cursor'],
    [`cursor=${cursor('abc')}=`, '400 cursor'],
    ['cursor=', '400 cursor'],
    ['model=m&limit=3', { limit: 3, model: 'm' }],
    ['other=1', '400 other'],
    [`${'o'.repeat(120)}=1`, `400 ${'o'.repeat(100)}`],
    ['tag:team=a', '400 tag:team'],
  ]
  for (const [query, read] of rows)
    it(`reads ${query.slice(0, 60)}`, async () => assert.deepEqual(await ask(`/plain?${query}`), read))
})

describe('the query of a list that can have tags', () => {
  const rows: [query: string, read: unknown][] = [
    ['limit=3', { query: { limit: 3 } }],
    ['tag:team=search&limit=3', { query: { limit: 3 }, tags: { team: 'search' } }],
    ['tag:team=search&tag:env=prod', { query: { limit: 20 }, tags: { env: 'prod', team: 'search' } }],
    ['tag:=x', '400 tag:'],
    ['tag:team=', '400 tag:team'],
    ['tag:team=a&tag:team=b', '400 tag:team'],
    ['model:tag:=x', '400 model:tag:'],
    ['team=search', '400 team'],
  ]
  for (const [query, read] of rows)
    it(`reads ${query}`, async () => assert.deepEqual(await ask(`/tagged?${query}`), read))
})
