import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const MB = 1024 * 1024
const HEAP_MB = 96
const KEYS = 15
const CHUNKS = { text: 'x'.repeat(MB), wide: `${'x'.repeat(MB)}汉` }

describe('a gateway with a small heap', async () => {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  let answer = Promise.withResolvers<void>()
  let asked = 0
  const upstream = await byteUpstream(cleanUp, async (req, res) => {
    let size = 0
    for await (const piece of req) size += (piece as Buffer).length
    if (size > MB / 2) {
      asked++
      await answer.promise
    }
    chatAnswer(res)
  })
  const config = join(folder.path, 'config.json')
  const accounts = [...Array.from({ length: KEYS }, (_, i) => `attacker-${i}`), 'victim']
  await writeFile(
    config,
    JSON.stringify({
      accounts: accounts.map((id) => ({ id })),
      keys: accounts.map((id) => ({ id, account: id, secret: `sk-${id}` })),
      models: [{ id: 'chat-small', kind: 'chat' }],
      lines: [
        {
          ...{ id: 'l', provider: 'p', protocol: 'openai' },
          ...{ baseUrl: `${upstream.url}/v1`, models: { 'chat-small': 'u' } },
        },
      ],
    }),
  )
  const gateway = await startGatewayProcess({
    GATEWAY_CONFIG: config,
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
  })
  cleanUp.after(() => gateway.stop())
  const victim = async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-victim', 'content-type': 'application/json' },
      body: JSON.stringify(chat()),
    })
    await response.arrayBuffer()
    return response.status
  }

  // Each of these came to 150 to 300 MB of parsed texts.
  for (const [name, more, count] of [
    ['large texts', { filler: Array(19).fill(CHUNKS.text) }, KEYS],
    ['large texts of two bytes a character', { filler: Array(19).fill(CHUNKS.wide) }, KEYS],
    ['many texts', { filler: [CHUNKS.wide] }, 10 * KEYS],
    ['many values', { filler: Array.from({ length: 90_000 }, () => ({ a: [] })) }, 5 * KEYS],
  ] as const)
    it(`goes on when many callers send ${name} at once`, async () => {
      asked = 0
      answer = Promise.withResolvers<void>()
      const body = JSON.stringify(chat('chat-small', 'Hi', more))
      const clients = Array.from({ length: count }, (_, i) =>
        rawClient(
          gateway.port,
          `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-attacker-${i % KEYS}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`,
        ),
      )
      for (const { socket } of clients) socket.write(body)
      // The end of a connection whose body nobody reads may overtake its refusal.
      const over = () => clients.filter(({ received, socket }) => received !== '' || socket.closed).length
      try {
        await until(() => asked + over() === count, 'all run or are refused', 90_000)
        // On a busy machine the process may stand still for so long that a look-up of keys comes too late.
        const isAway = gateway.logged.some(({ msg }) => msg === 'store is away')
        const refusal = isAway ? /^$|^HTTP\/1\.1 (?:429|500|503) / : /^$|^HTTP\/1\.1 (?:429|503) /
        for (const { received } of clients) assert.match(received, refusal)
        assert.equal(await victim(), 200)
        answer.resolve()
        await until(() => over() === count, 'all are answered')
        const served = clients.filter(({ received }) => received.startsWith('HTTP/1.1 200')).length
        assert.equal(served, asked)
      } finally {
        // Else they would hold what the next test needs.
        answer.resolve()
        for (const { socket } of clients) {
          socket.destroy()
          if (!socket.closed) await once(socket, 'close')
        }
      }
    })
})
