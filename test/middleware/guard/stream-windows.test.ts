import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type Response as Answer } from 'express'
import { callOf, errorEnvelope, type GuardOptions, guard } from '../../../lib/index.ts'
import { type GuardFunction, patterns } from '../../../lib/middleware/guard/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { messageEvent } from '../../support/scripted-upstream.ts'

const CARD = '4111 1111 1111 1111'
const maskCards = patterns({ mask: [/\d{4}(?: \d{4}){3}/] })
const noSecrets: GuardFunction = (text) => (text.includes('secret') ? { refuse: 'it has a secret' } : 'allow')

/** Asks an app whose handler writes a stream behind a guard. */
async function streamed(
  t: TestContext,
  options: GuardOptions,
  write: (res: Answer) => unknown,
  init: RequestInit = {},
) {
  const ended = Promise.withResolvers<string | null>()
  const served = await serveApp((app) => {
    app.use((req, _res, next) => {
      callOf(req).onEnd('test', ({ outcome }) => ended.resolve(outcome?.errorCode ?? null))
      next()
    })
    app.post('/', express.json(), guard(options), async (_req, res) => {
      res.setHeader('content-type', 'text/event-stream')
      await write(res)
    })
    app.use(errorEnvelope())
  })
  t.after(() => served.close())
  const response = fetch(served.url, { method: 'POST', ...init })
  return { response, ended: ended.promise }
}

const chunk = (delta: object, index = 0): string =>
  `data: ${JSON.stringify({ choices: [{ index, delta }] })}\n\n`
const tool = (args: string, name?: string): string =>
  chunk({ tool_calls: [{ index: 0, function: { ...(name && { name }), arguments: args } }] })

/** Returns the joined pieces of a member, of one choice if that is given. */
function joined(text: string, member: string, index?: number): string {
  const own =
    index === undefined
      ? text
      : text
          .split('\n\n')
          .filter((each) => each.includes(`"index":${index},`))
          .join('\n\n')
  return [...own.matchAll(new RegExp(`"${member}":("(?:[^"\\\\]|\\\\.)*")`, 'g'))]
    .map(([, part]) => JSON.parse(part as string))
    .join('')
}

/** Reads what there is of a body until `done` says so, or all of it. */
async function read(response: Response, done: (text: string) => boolean = () => false) {
  const decoder = new TextDecoder()
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  let text = ''
  const go = async (until = done): Promise<{ text: string; isWhole: boolean }> => {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        text += decoder.decode(next.value, { stream: true })
        if (until(text)) return { text, isWhole: false }
      }
      return { text, isWhole: true }
    } catch {
      return { text, isWhole: false }
    }
  }
  return { ...(await go()), rest: () => go(() => false) }
}

describe('the windows of a guarded stream', () => {
  for (const size of [1, 3, 64])
    it(`mask a match wherever it lies among characters of several bytes, in writes of ${size} bytes`, async (t) => {
      const before = 'Grüße 🦉🦉 aus Köln – '
      for (let offset = 0; offset < 40; offset += 3) {
        const text = `${'🦉'.repeat(offset)}${before}${CARD} ü🦉 und so weiter, ${'ö🦉'.repeat(20)}`
        const pieces = text.match(/[\s\S]{1,5}/gu) as string[]
        const bytes = Buffer.from(`${pieces.map((content) => chunk({ content })).join('')}data: [DONE]\n\n`)
        const { response } = await streamed(t, { output: maskCards, windowChars: 40 }, async (res) => {
          for (let at = 0; at < bytes.length; at += size * 40) {
            for (let i = at; i < Math.min(at + size * 40, bytes.length); i += size)
              res.write(bytes.subarray(i, Math.min(i + size, bytes.length)))
            await new Promise(setImmediate)
          }
          res.end()
        })
        const { text: got, isWhole } = await read(await response)
        assert.equal(isWhole, true)
        assert.equal(joined(got, 'content'), text.replace(CARD, '[removed]'), `${offset}`)
        assert.doesNotMatch(got, /1111|\ufffd/)
        assert.match(got, /data: \[DONE\]\n\n$/)
      }
    })

  const PARTS: Readonly<
    Record<string, [first: readonly string[], second: (part: string) => string, member: string]>
  > = {
    'arguments of a tool behind a text': [
      [chunk({ content: 'Let me look.' }), tool('', 'look')],
      (part) => tool(part),
      'arguments',
    ],
    'a text behind reasoning': [
      [chunk({ reasoning_content: 'They want to know.' })],
      (content) => chunk({ content }),
      'content',
    ],
    'a text behind thinking': [
      [
        messageEvent('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
        messageEvent('content_block_delta', {
          ...{ index: 0, delta: { type: 'thinking_delta', thinking: 'They want to know.' } },
        }),
        messageEvent('content_block_stop', { index: 0 }),
        messageEvent('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
      ],
      (text) => messageEvent('content_block_delta', { index: 1, delta: { type: 'text_delta', text } }),
      'text',
    ],
    'a text behind a summary': [
      [
        messageEvent('response.reasoning_summary_text.delta', {
          ...{ item_id: 'rs_1', output_index: 0, summary_index: 0, delta: 'They want to know.' },
        }),
      ],
      (delta) =>
        messageEvent('response.output_text.delta', {
          ...{ item_id: 'msg_1', output_index: 1, content_index: 0, delta },
        }),
      'delta',
    ],
  }
  for (const [name, [first, second, member]] of Object.entries(PARTS))
    it(`send ${name} before the stream has ended`, async (t) => {
      const gate = Promise.withResolvers<void>()
      const { response } = await streamed(t, { output: maskCards, windowChars: 60 }, async (res) => {
        for (const each of first) res.write(each)
        for (let i = 0; i < 30; i++) res.write(second('1234567 '))
        await gate.promise
        for (const part of [' 4111 11', '11 1111 ', '1111 and so on']) res.write(second(part))
        res.end()
      })
      const { text, rest } = await read(await response, (all) =>
        joined(all, member).includes('1234567 1234567 '),
      )
      assert.match(text, /1234567/)
      gate.resolve()
      const whole = await rest()
      assert.equal(whole.isWhole, true)
      assert.match(joined(whole.text, member), /^(They want to know\.)?(1234567 ){30} \[removed\] and so on$/)
    })

  it('refuse a match whose beginning was sent before another part, when the first part goes on', async (t) => {
    for (const [output, begun, rest] of [
      [noSecrets, 'this is the sec', 'ret of it'],
      [maskCards, 'the card 4111 1111 ', '1111 1111 is it'],
    ] as const) {
      const gate = Promise.withResolvers<void>()
      const { response } = await streamed(t, { output, windowChars: 40 }, async (res) => {
        res.write(chunk({ content: begun }))
        for (let i = 0; i < 10; i++) res.write(tool('abcdefg '))
        await gate.promise
        res.write(chunk({ content: rest }))
        for (let i = 0; i < 10; i++) res.write(tool('abcdefg '))
        res.end('data: [DONE]\n\n')
      })
      const { text, rest: go } = await read(await response, (all) => all.includes('abcdefg'))
      assert.equal(joined(text, 'content'), begun)
      gate.resolve()
      const whole = await go()
      assert.equal(whole.isWhole, false)
      assert.match(whole.text, /"code":"content_filtered"/)
      assert.ok(!whole.text.includes(rest), 'the end of the match was not sent')
    }
  })

  it('find in arguments of tools what JSON has escaped, as a plain answer does', async (t) => {
    const output = patterns({ mask: [/Jürgen 🦉/] })
    const args = '{"to":"J\\u00fcrgen \\ud83e\\udd89","path":"C:\\\\u00fc","said":"\\"hi\\"\\n","pad":"abc"}'
    const expected = { ...JSON.parse(args), to: '[removed]' }
    const { response } = await streamed(t, { output, windowChars: 60 }, async (res) => {
      res.write(tool('', 'mail'))
      for (const part of args.match(/[\s\S]{1,4}/g) as string[]) {
        res.write(tool(part))
        await new Promise(setImmediate)
      }
      res.end('data: [DONE]\n\n')
    })
    assert.deepEqual(JSON.parse(joined((await read(await response)).text, 'arguments')), expected)
    const plain = await streamed(t, { output }, (res) => {
      const message = { tool_calls: [{ function: { name: 'mail', arguments: args } }] }
      res.type('json').send(JSON.stringify({ choices: [{ index: 0, message }] }))
    })
    const answer = (await (await plain.response).json()) as {
      choices: { message: { tool_calls: { function: { arguments: string } }[] } }[]
    }
    assert.deepEqual(
      JSON.parse(answer.choices[0]?.message.tool_calls[0]?.function.arguments as string),
      expected,
    )
  })

  it('mask each of several choices that come in turn', async (t) => {
    const said = ['0: it is ', `${CARD}, `, 'and so on, '.repeat(6)].join('')
    const parts = said.match(/[\s\S]{1,4}/g) as string[]
    const { response } = await streamed(t, { output: maskCards, windowChars: 40 }, async (res) => {
      for (const content of parts) {
        for (const index of [0, 1, 2]) res.write(chunk({ content }, index))
        await new Promise(setImmediate)
      }
      res.end()
    })
    const { text, isWhole } = await read(await response)
    assert.equal(isWhole, true)
    for (const index of [0, 1, 2])
      assert.equal(joined(text, 'content', index), said.replace(CARD, '[removed]'), `${index}`)
  })

  it('decide by onError while the function does not settle', async (t) => {
    const stuck: GuardFunction = (text) => (text.includes('stuck') ? new Promise(() => {}) : 'allow')
    const writeAll = (parts: readonly string[]) => async (res: Answer) => {
      for (const content of parts) {
        res.write(chunk({ content }))
        await new Promise(setImmediate)
      }
      res.end('data: [DONE]\n\n')
    }
    const options = { output: stuck, windowChars: 20, timeoutMs: 30 }
    const late = [...Array(8).fill('harmless, '), 'now it is stuck', ' and more']
    const refusedAtOnce = await streamed(t, options, writeAll(['stuck at once']))
    assert.equal((await refusedAtOnce.response).status, 400)
    const refused = await streamed(t, options, writeAll(late))
    const { text, isWhole } = await read(await refused.response)
    assert.equal(isWhole, false)
    assert.match(joined(text, 'content'), /^harmless/)
    assert.doesNotMatch(joined(text, 'content'), /stuck|more/)
    assert.match(text, /"code":"content_filtered"/)
    assert.equal(await refused.ended, 'content_filtered')
    const allowed = await streamed(t, { ...options, onError: 'allow' }, writeAll(late))
    const all = await read(await allowed.response)
    assert.deepEqual([all.isWhole, joined(all.text, 'content')], [true, late.join('')])
  })

  it('let go of a caller that leaves while one of them is checked', async (t) => {
    const checking = Promise.withResolvers<void>()
    const output: GuardFunction = (text) => {
      if (!text.includes('stuck')) return 'allow'
      checking.resolve()
      return new Promise(() => {})
    }
    const leaving = new AbortController()
    const { response, ended } = await streamed(
      t,
      { output, windowChars: 20, timeoutMs: 600_000 },
      async (res) => {
        for (let i = 0; i < 8; i++) {
          res.write(chunk({ content: 'harmless, ' }))
          await new Promise(setImmediate)
        }
        res.write(chunk({ content: 'now it is stuck, and more of it' }))
      },
      { signal: leaving.signal },
    )
    const reading = read(await response)
    await checking.promise
    leaving.abort()
    assert.doesNotMatch((await reading).text, /stuck/)
    assert.equal(await ended, 'client_closed_request')
  })
})
