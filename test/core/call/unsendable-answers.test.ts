import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { holdEnd, holdLastByte } from '../../../lib/core/call/index.ts'
import { serveApp } from '../../support/app-server.ts'

type Unsendable = (res: ServerResponse) => void
type Instead = (error: unknown) => void

/** Answers that Node refuses because of the arguments or the status of `end`. */
const REFUSED: Record<string, Unsendable> = {
  'an object as its body': (res) => void res.end({ placed: true } as never),
  'a number as its body': (res) => void res.end(17 as never),
  'a status that is none': (res) => {
    res.statusCode = undefined as never
    res.end('done')
  },
  'a status of four digits': (res) => {
    res.statusCode = 1000
    res.end('done')
  },
}

/** Answers whose fault nobody can find before the head is written. */
const REFUSED_LATE: Record<string, Unsendable> = {
  'a reason that is no Latin-1': (res) => {
    res.statusMessage = 'übergroß — 大'
    res.end('done')
  },
  'a trailer with a length': (res) => {
    res.setHeader('trailer', 'x-sum')
    res.setHeader('content-length', 4)
    res.end('done')
  },
}

/** Asks an app whose handler answers so, in front of an error handler that answers 500. */
async function asked(
  t: TestContext,
  handler: Unsendable,
  hold: (res: ServerResponse, next: Instead) => void,
) {
  const errors: unknown[] = []
  const app = await serveApp((app) => {
    app.use((_req, res, next) => {
      const instead = (error: unknown) => {
        errors.push(error)
        res.removeHeader('trailer')
        res.removeHeader('content-length')
        res.statusMessage = ''
        res.statusCode = 500
        res.end('error')
      }
      hold(res, instead)
      next()
    })
    app.use((_req, res) => handler(res))
    app.use((_error: unknown, _req: unknown, res: ServerResponse, _next: unknown) => {
      res.statusCode = 500
      res.end('error')
    })
  })
  t.after(() => app.close())
  const answer = await fetch(app.url, { signal: AbortSignal.timeout(5000) })
  return { answer: [answer.status, await answer.text()], errors }
}

describe('an answer that Node refuses to send', () => {
  for (const [what, handler] of Object.entries(REFUSED))
    it(`throws in its handler, before its end waits: ${what}`, async (t) => {
      const statuses: number[] = []
      const { answer } = await asked(t, handler, (res, next) => {
        const beforeEnd = () => {
          statuses.push(res.statusCode)
          return Promise.resolve()
        }
        holdEnd(res, { beforeEnd }, next)
      })
      assert.deepEqual(answer, [500, 'error'])
      assert.deepEqual(statuses, [500], 'only for the answer that is sent')
    })

  for (const [what, handler] of Object.entries(REFUSED_LATE)) {
    it(`is replaced by another answer if its end waits: ${what}`, async (t) => {
      const hold = (res: ServerResponse, next: Instead) =>
        holdEnd(res, { beforeEnd: () => Promise.resolve() }, next)
      const { answer, errors } = await asked(t, handler, hold)
      assert.deepEqual([answer, errors.length], [[500, 'error'], 1])
    })

    it(`is replaced by another answer if its last byte waits: ${what}`, async (t) => {
      const hold = (res: ServerResponse, next: Instead) => holdLastByte(res, () => Promise.resolve(), next)
      const { answer, errors } = await asked(t, handler, hold)
      assert.deepEqual([answer, errors.length], [[500, 'error'], 1])
    })
  }

  for (const body of [0, false, null, '']) {
    it(`does not include the body ${JSON.stringify(body)}, which Node sends as an empty body after the wait of its end`, async (t) => {
      let asks = 0
      const { answer } = await asked(
        t,
        (res) => void res.end(body as never),
        (res, next) => {
          const beforeEnd = () => {
            asks++
            return Promise.resolve()
          }
          holdEnd(res, { beforeEnd }, next)
        },
      )
      assert.deepEqual([answer, asks], [[200, ''], 1])
    })
  }

  it('for an invalid chunk does not pass that chunk to the holder of its end', async (t) => {
    const sent: unknown[] = []
    const { answer } = await asked(
      t,
      (res) => void res.write(17 as never),
      (res, next) => {
        const onSend = (chunk: unknown) => void sent.push(chunk)
        holdEnd(res, { beforeEnd: () => undefined, onSend }, next)
      },
    )
    assert.deepEqual([answer, sent], [[500, 'error'], ['error']])
  })
})
