import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'

const HEAP_MB = 96
const TEXT = 'x'.repeat(8_000_000)
/** Their texts come to more than the heap. */
const CALLERS = 25

const ANSWERS = {
  openai: {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'u' },
    choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 },
  },
  anthropic: {
    ...{ id: 'm', type: 'message', role: 'assistant', model: 'u', content: [{ type: 'text', text: TEXT }] },
    ...{ stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 1, output_tokens: 5 } },
  },
}

describe('a gateway with a small heap', () => {
  const cleanUp = cleaningUp()

  for (const [protocol, answer] of Object.entries(ANSWERS))
    it(`goes on while callers do not read their large answers, of a line of protocol ${protocol}`, async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      let answered = 0
      const upstream = await byteUpstream(cleanUp, async (req, res) => {
        await req.resume().toArray()
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(JSON.stringify(answer), () => answered++)
      })
      const config = join(folder.path, 'config.json')
      const line = {
        id: 'l',
        provider: 'p',
        protocol,
        baseUrl: `${upstream.url}/v1`,
        models: { 'chat-small': 'u' },
      }
      await writeFile(
        config,
        JSON.stringify({
          accounts: [{ id: 'a' }],
          keys: [{ id: 'k', account: 'a', secret: 'sk-a' }],
          models: [{ id: 'chat-small', kind: 'chat' }],
          lines: [line],
        }),
      )
      const gateway = await startGatewayProcess({
        GATEWAY_CONFIG: config,
        NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
      })
      t.after(() => gateway.stop())
      const body = JSON.stringify(chat())
      const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-a\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`
      const clients = []
      for (let i = 1; i <= CALLERS; i++) {
        const client = rawClient(gateway.port, head + body)
        client.socket.pause()
        clients.push(client)
        await until(() => answered === i, `answer ${i} has come`)
      }
      for (const { socket } of clients) socket.resume()
      for (const client of clients) {
        const received = await client.end()
        assert.ok(received.startsWith('HTTP/1.1 200') && received.length > TEXT.length)
      }
    })
})
