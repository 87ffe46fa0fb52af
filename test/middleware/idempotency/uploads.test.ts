import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import { errorEnvelope, idempotency } from '../../../lib/index.ts'
import { serveApp } from '../../support/app-server.ts'

/** A file of somebody's form. */
interface Sent {
  readonly name: string
  readonly text: string
}

const folder = mkdtempSync(join(tmpdir(), 'uploads-'))
after(() => rmSync(folder, { recursive: true }))
let written = 0
const common = ({ name, text }: Sent) => ({ mimetype: 'text/plain', size: text.length, originalname: name })
const inMemory = (sent: Sent) => ({ fieldname: 'f', ...common(sent), buffer: Buffer.from(sent.text) })
/** Writes the file where it lies at the request: that differs each time. */
const writtenTo = ({ text }: Sent): string => {
  const path = join(folder, `${++written}`)
  writeFileSync(path, text)
  return path
}
const onDisk = (sent: Sent) => ({ fieldname: 'f', ...common(sent), path: writtenTo(sent) })
const byFormidable = (sent: Sent) => ({
  ...{ size: sent.text.length, filepath: writtenTo(sent), originalFilename: sent.name },
  ...{ mimetype: 'text/plain', hash: null },
})
const withData = ({ name, text }: Sent) => ({
  ...{ name, mimetype: 'text/plain', size: text.length, data: Buffer.from(text), md5: text },
  mv: () => {},
})

/** The members that parsers of uploads leave in a request. */
const PARSERS: Readonly<Record<string, (sent: Sent) => object>> = {
  'one file in memory': (sent) => ({ file: inMemory(sent) }),
  'one file on the disk': (sent) => ({ file: onDisk(sent) }),
  'files on the disk, by field': (sent) => ({ files: { f: [onDisk(sent)], g: [onDisk(sent)] } }),
  'a file of formidable': (sent) => ({ files: { f: [byFormidable(sent)] } }),
  'one file in another storage': (sent) => ({
    file: { fieldname: 'f', ...common(sent), path: 'https://files.example/1' },
  }),
  'a list': (sent) => ({ files: [inMemory(sent)] }),
  'lists by field': (sent) => ({ files: { f: [inMemory(sent)] } }),
  'files by field, with their data': (sent) => ({ files: { f: withData(sent) } }),
}

describe('an upload with an Idempotency-Key', () => {
  for (const [what, parsed] of Object.entries(PARSERS))
    for (const replay of [false, true])
      it(`${what}${replay ? ', with replay' : ''}: the same file is a repetition, another one is refused`, async (t) => {
        const stored: string[] = []
        const parser: RequestHandler = (req, _res, next) => {
          const sent = JSON.parse(String(req.headers['x-sent'])) as Sent
          Object.assign(req, { body: Object.create(null) }, parsed(sent))
          next()
        }
        const app = await serveApp((app) => {
          app.post('/files', parser, idempotency({ replay }), (req, res) => {
            stored.push(String(req.headers['x-sent']))
            res.json({ stored: stored.length })
          })
          app.use(errorEnvelope())
        })
        t.after(app.close)
        const send = async (sent: Sent): Promise<number> => {
          const headers = { 'idempotency-key': 'k', 'x-sent': JSON.stringify(sent) }
          return (await fetch(`${app.url}/files`, { method: 'POST', headers })).status
        }
        const sent = { name: 'a.txt', text: 'one' }
        assert.equal(await send(sent), 200)
        assert.equal(await send(sent), replay ? 200 : 409)
        assert.equal(await send({ ...sent, text: 'longer' }), 400)
        assert.equal(await send({ ...sent, name: 'b.txt' }), 400)
        // Of a file elsewhere, only name, type and size are known.
        if (what !== 'one file in another storage') assert.equal(await send({ ...sent, text: 'two' }), 400)
        assert.deepEqual(stored, [JSON.stringify(sent)])
      })
})
