import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { holdEnd, isHeldBack } from '../../../lib/core/call/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

interface Held {
  /** Answers the request, whose end is held. */
  readonly handler: (res: ServerResponse) => void
  /** Returns the work that the end waits for; called each time. */
  readonly beforeEnd: () => Promise<void> | undefined
  /** Is handed what `beforeEnd` throws. Answers 500 by default. */
  readonly next?: (error: unknown, res: ServerResponse) => void
}

/** The answer that a caller gets when its end is held, and what happened meanwhile. */
async function answered(t: TestContext, { handler, beforeEnd, next }: Held) {
  const sent: unknown[] = []
  const errors: unknown[] = []
  let asked = 0
  const app = await serveApp((app) => {
    app.use((_req, res) => {
      const holder = {
        beforeEnd: () => {
          asked++
          return beforeEnd()
        },
        onSend: (chunk: unknown, encoding: unknown) => void sent.push([chunk, encoding]),
      }
      holdEnd(res, holder, (error) => {
        errors.push(error)
        if (next) next(error, res)
        else res.writeHead(500, { 'x-error': 'yes' }).end('error')
      })
      handler(res)
    })
  })
  t.after(() => app.close())
  const response = await fetch(app.url)
  return { response, text: await response.text(), sent, errors, asked }
}

const fault = new Error('cannot be recorded')

describe('an answer whose end does not wait', () => {
  it('is sent as it was given, and its holder is asked once', async (t) => {
    const { response, text, sent, asked, errors } = await answered(t, {
      beforeEnd: () => undefined,
      handler: (res) => {
        res.statusCode = 201
        res.write('one')
        res.end('two', 'latin1')
        res.end()
      },
    })
    assert.deepEqual([response.status, text, asked, errors], [201, 'onetwo', 1, []])
    assert.deepEqual(sent, [
      ['one', undefined],
      ['two', 'latin1'],
    ])
  })
})

describe('an answer whose end is refused', () => {
  for (const [how, beforeEnd] of [
    [
      'at once',
      () => {
        throw fault
      },
    ],
    ['later', () => Promise.reject(fault)],
  ] as const) {
    it(`${how} becomes another answer, whose end does not wait`, async (t) => {
      const { response, text, sent, asked, errors } = await answered(t, {
        beforeEnd,
        handler: (res) => void res.setHeader('x-kept', '1').end('done'),
      })
      assert.deepEqual([response.status, text, asked, errors], [500, 'error', 1, [fault]])
      assert.equal(response.headers.get('x-error'), 'yes')
      assert.deepEqual(sent, [['done', undefined]], 'the error is no part of the answer')
    })

    it(`${how} may be written in pieces instead`, async (t) => {
      const { response, text, sent } = await answered(t, {
        beforeEnd,
        handler: (res) => void res.end('done'),
        next: (_error, res) => {
          res.statusCode = 503
          res.write('a')
          res.end('b')
        },
      })
      assert.deepEqual([response.status, text], [503, 'ab'])
      assert.deepEqual(sent, [['done', undefined]])
    })
  }
})

describe('an answer whose end is held back', () => {
  it('is not changed by later changes of the response', async (t) => {
    const go = Promise.withResolvers<void>()
    const states: boolean[] = []
    const { response, text, sent, asked } = await answered(t, {
      beforeEnd: () => go.promise,
      handler: (res) => {
        res.statusCode = 201
        res.statusMessage = 'Made'
        res.setHeader('x-kept', '1')
        res.setHeader('x-list', ['a', 'b'])
        states.push(isHeldBack(res))
        res.end('done')
        states.push(isHeldBack(res))
        res.statusCode = 500
        res.statusMessage = 'Broken'
        res.setHeader('x-kept', '2')
        res.setHeader('x-late', '1')
        res.removeHeader('x-list')
        assert.equal(res.writeHead(502), res)
        assert.equal(res.write('late'), true)
        assert.equal(res.end('later'), res)
        res.once('finish', () => states.push(isHeldBack(res)))
        setImmediate(go.resolve)
      },
    })
    assert.deepEqual([response.status, response.statusText, text, asked], [201, 'Made', 'done', 1])
    assert.equal(response.headers.get('x-kept'), '1')
    assert.equal(response.headers.get('x-list'), 'a, b')
    assert.equal(response.headers.get('x-late'), null)
    assert.deepEqual(sent, [['done', undefined]])
    await until(() => states.length === 3, 'the end of the answer')
    assert.deepEqual(states, [false, true, false])
  })

  it('continues after a head that was sent before', async (t) => {
    const { response, text, sent } = await answered(t, {
      beforeEnd: () => Promise.resolve(),
      handler: (res) => {
        res.writeHead(202, { 'x-kept': '1' })
        res.write('one')
        res.end('two')
        res.write('late')
      },
    })
    assert.deepEqual([response.status, text, response.headers.get('x-kept')], [202, 'onetwo', '1'])
    assert.deepEqual(sent, [
      ['one', undefined],
      ['two', undefined],
    ])
  })

  it('is followed by another answer with a head of its own if it is refused', async (t) => {
    const { response, text, errors } = await answered(t, {
      beforeEnd: () => new Promise((_resolve, reject) => setImmediate(reject, fault)),
      handler: (res) => {
        res.statusCode = 201
        res.end('done')
        res.writeHead(502)
      },
      next: (_error, res) => {
        assert.equal(isHeldBack(res), false)
        res.writeHead(503, { 'x-error': 'yes' })
        res.end('error')
      },
    })
    assert.deepEqual([response.status, text, errors], [503, 'error', [fault]])
    assert.equal(response.headers.get('x-error'), 'yes')
  })
})

describe('an answer of a declared length that no holder observes', () => {
  it('is sent to its last byte, and only its end waits', async (t) => {
    const go = Promise.withResolvers<void>()
    const asked: string[] = []
    let answer: ServerResponse | undefined
    const app = await serveApp((app) => {
      app.use((_req, res) => {
        answer = res
        const beforeEnd = () => {
          asked.push('for the end')
          return go.promise
        }
        holdEnd(res, { beforeEnd }, () => asked.push('failed'))
        res.setHeader('content-length', 6)
        res.write('abc')
        res.write('def')
        asked.push('all written')
        res.end()
      })
    })
    t.after(() => app.close())
    t.after(() => go.resolve())
    assert.equal(await (await fetch(app.url)).text(), 'abcdef')
    assert.deepEqual([asked, answer?.writableEnded], [['all written', 'for the end'], false])
    go.resolve()
    await until(() => answer?.writableFinished === true, 'the end of the answer')
  })
})
