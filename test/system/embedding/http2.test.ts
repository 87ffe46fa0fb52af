import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import express from 'express'
import { errorEnvelope, idempotency, rateLimit } from 'express-model-gateway'

/** Express itself cannot answer a request of HTTP/2. Callers of HTTP/1.1 are served on the same port. */
it('a server of node:http2 serves callers of HTTP/1.1 as any server', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'http2-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  execFileSync('openssl', [...made, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const app = express()
  let placed = 0
  const limits = rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 2 }] })
  app.post('/orders', express.json(), idempotency(), limits, (_req, res) => {
    res.status(201).json({ placed: ++placed })
  })
  app.use(errorEnvelope())
  const server = createSecureServer(
    { allowHTTP1: true, key: readFileSync(key), cert: readFileSync(cert) },
    app as never,
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  const place = (once: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': once }
      const options = {
        port,
        path: '/orders',
        method: 'POST',
        headers,
        rejectUnauthorized: false,
        agent: false,
      }
      const asked = request(options, (res) => res.resume().on('end', () => resolve(res.statusCode)))
      asked.on('error', reject).end('{"item":"pen"}')
    })
  assert.deepEqual(
    [await place('a'), await place('a'), await place('b'), await place('c')],
    [201, 409, 201, 429],
  )
  assert.equal(placed, 2)
})
