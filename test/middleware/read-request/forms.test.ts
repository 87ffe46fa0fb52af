import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { FormFile, type Operation, videos } from '../../../lib/core/operations/index.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../../lib/core/timing/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { isForm, readForm } from '../../../lib/middleware/read-request/read-form.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { refusalOf } from './refusal.ts'

type Part = readonly [name: string, value: string, type?: string]

const written = ([name, value, type]: Part) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n${type ? `content-type: ${type}\r\n` : ''}\r\n${value}\r\n`

/** The JSON that a form stands for. Rejects with what refuses it. */
function read(...parts: readonly Part[]): Promise<Record<string, unknown>> {
  return readBytes(Buffer.from(`${parts.map(written).join('')}--b--\r\n`))
}

function readBytes(
  bytes: Buffer,
  type = 'multipart/form-data; boundary=b',
): Promise<Record<string, unknown>> {
  return readForm(type, bytes)
}

async function refused(parts: readonly Part[], message: RegExp, param?: string): Promise<void> {
  await assert.rejects(read(...parts), (error) => {
    assert.ok(error instanceof GatewayError)
    assert.deepEqual([error.code, error.param], ['invalid_request', param])
    assert.match(error.message, message)
    return true
  })
}

describe('a form stands for', () => {
  it('its fields, as texts', async () => {
    assert.deepEqual(await read(['model', 'video'], ['prompt', 'ein Kätzchen'], ['seconds', '']), {
      model: 'video',
      prompt: 'ein Kätzchen',
      seconds: '',
    })
  })

  it('objects, all members of which are in one', async () => {
    assert.deepEqual(await read(['a[b]', '1'], ['a[c]', '2'], ['a[d][e]', '3'], ['a[d][f]', '4']), {
      a: { b: '1', c: '2', d: { e: '3', f: '4' } },
    })
  })

  it('lists, in the order of their parts', async () => {
    assert.deepEqual(await read(['a[]', '1'], ['b', 'x'], ['a[]', '2'], ['c[d][]', '3'], ['c[d][]', '4']), {
      a: ['1', '2'],
      b: 'x',
      c: { d: ['3', '4'] },
    })
  })

  it('lists of objects, one for each part', async () => {
    assert.deepEqual(await read(['a[][b]', '1'], ['a[][b]', '2']), { a: [{ b: '1' }, { b: '2' }] })
  })

  it('JSON where a part says that it is some', async () => {
    const json = 'application/json'
    assert.deepEqual(await read(['a', '{"b":[1]}', json], ['c', '2', json], ['d', '2']), {
      a: { b: [1] },
      c: 2,
      d: '2',
    })
  })

  it('JSON of any texts and of nothing, up to a thousand values under names of a thousand characters', async () => {
    const json = 'application/json'
    const given = {
      none: null,
      text: 'x'.repeat(5000),
      [`${'n'.repeat(997)}`]: true,
      list: Array(995).fill(0),
    }
    assert.deepEqual(await read(['a', JSON.stringify(given), json]), { a: given })
  })

  it('fields of up to 4 MiB', async () => {
    const text = 'x'.repeat(4 * 1024 * 1024)
    assert.equal((await read(['a', text])).a, text)
    await refused([['a', `${text}x`]], /"a" is longer than 4194304 bytes, and not a file/, 'a')
  })

  it('files, with their name, type and bytes', async () => {
    const bytes = Buffer.from([0, 255, 13, 10, 45, 45])
    const head =
      '--b\r\ncontent-disposition: form-data; name="f"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n'
    const json = await readBytes(Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--b--\r\n')]))
    assert.deepEqual(json, { f: new FormFile('a.png', 'image/png', bytes) })
  })

  it('names of up to 200 characters, eight deep', async () => {
    const long = 'n'.repeat(200)
    assert.deepEqual(await read([long, 'x']), { [long]: 'x' })
    assert.deepEqual(await read(['a[b][c][d][e][f][g][h]', 'x']), {
      a: { b: { c: { d: { e: { f: { g: { h: 'x' } } } } } } },
    })
  })

  it('parts that are named behind any number of headers', async () => {
    const behind = (headers: number) => {
      const others = Array.from({ length: headers }, (_, i) => `x-${i}: y\r\n`).join('')
      return readBytes(Buffer.from(`--b\r\n${others}${written(['a', 'x']).slice(5)}--b--\r\n`))
    }
    for (const headers of [0, 19, 20, 500]) assert.deepEqual(await behind(headers), { a: 'x' }, `${headers}`)
  })

  it('a hundred parts', async () => {
    const parts = Array.from({ length: 100 }, (_, i): Part => [`p${i}`, 'x'])
    assert.equal(Object.keys(await read(...parts)).length, 100)
    await refused([...parts, ['one', 'more']], /more than 100 parts/)
  })
})

describe('a form is refused', () => {
  it('whose part occurs twice, or under two forms of its name', async () => {
    const twice: Part[][] = [
      [
        ['a', '1'],
        ['a', '2'],
      ],
      [
        ['a[b]', '1'],
        ['a[b]', '2'],
      ],
      [
        ['a', '1'],
        ['a[b]', '2'],
      ],
      [
        ['a[b]', '1'],
        ['a', '2'],
      ],
      [
        ['a[]', '1'],
        ['a[b]', '2'],
      ],
      [
        ['a[b]', '1'],
        ['a[]', '2'],
      ],
      [
        ['a[b][]', '1'],
        ['a[b][c]', '2'],
      ],
    ]
    for (const parts of twice) await refused(parts, /occurs twice in the form/)
  })

  it('with an invalid name', async () => {
    const names = [
      'a[b',
      'a]b[',
      '[a]',
      'a[b]c',
      '__proto__',
      'a[__proto__]',
      'n'.repeat(201),
      'a[b][c][d][e][f][g][h][i]',
    ]
    for (const name of names) await refused([[name, 'x']], /an invalid name; write/)
  })

  it('with a part that is no JSON though it says so, which it names', async () => {
    await refused([['a', '{"b"', 'application/json']], /"a" is not valid JSON/, 'a')
    const long = `{"${'b'.repeat(1000)}":1}`
    for (const json of [JSON.stringify(Array(1000).fill(1)), long, `{"c":${long}}`])
      await refused([['a', json, 'application/json']], /more than 1000 values, or names too long/, 'a')
    const half = JSON.stringify(Array(600).fill({}))
    await refused(
      [
        ['a', half, 'application/json'],
        ['b', half, 'application/json'],
      ],
      /more than 1000 values/,
      'b',
    )
  })

  it('for the first of its faults', async () => {
    const json = 'application/json'
    await refused(
      [
        ['a', '{', json],
        ['b]', 'x'],
        ['c', '[', json],
      ],
      /"a" is not valid JSON/,
      'a',
    )
    await refused(
      [
        ['b]', 'x'],
        ['a', '{', json],
      ],
      /an invalid name; write/,
    )
  })

  it('with one value, or one character of a name, too many', async () => {
    const json = 'application/json'
    const list = (length: number) => JSON.stringify(Array(length).fill(0))
    assert.equal(((await read(['a', list(999), json])).a as unknown[]).length, 999)
    await refused([['a', list(1000), json]], /more than 1000 values/, 'a')
    await refused(
      [
        ['a', list(999), json],
        ['b', '0', json],
      ],
      /more than 1000 values/,
      'b',
    )
    const named = (length: number) => JSON.stringify({ o: { ['n'.repeat(length)]: 0 } })
    assert.ok(await read(['a', named(995), json]))
    await refused([['a', named(996), json]], /names too long/, 'a')
  })

  it('that breaks off, be it in a file, or has no boundary', async () => {
    const whole = Buffer.from(`${written(['a', 'x'])}--b--\r\n`)
    const withFile = Buffer.from(`${written(['f"; filename="a.png', 'x'.repeat(100), 'image/png'])}--b--\r\n`)
    const broken = { code: 'invalid_request', message: /not a whole multipart form/ }
    for (const form of [whole, withFile]) await assert.rejects(readBytes(form.subarray(0, -12)), broken)
    await assert.rejects(readBytes(whole, 'multipart/form-data'), { message: /no boundary/ })
  })
})

it('a form is recognised by its type, in any case, with or without parameters', () => {
  for (const type of [
    'multipart/form-data; boundary=b',
    'Multipart/Form-Data;boundary=b',
    'multipart/form-data',
  ])
    assert.equal(isForm(type), true, type)
  for (const type of [
    undefined,
    '',
    'application/json',
    'multipart/form-data2',
    'text/multipart/form-data',
    'multipart/mixed',
  ])
    assert.equal(isForm(type), false, type)
})

const { catalog } = loadConfig({
  models: [{ id: 'video', kind: 'video' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { video: 'm' } },
  ],
})
const ASKED = { model: 'video', prompt: 'waves' }

it('a form without a byte is refused as one, and not read as JSON', async (t) => {
  const app = await serveApp((app) => {
    app.post('/v1/videos', readRequest({ catalog, operation: videos }), () => assert.fail('read'))
    app.use(errorEnvelope())
  })
  t.after(() => app.close())
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  const { code, message } = await refusalOf(await fetch(`${app.url}/v1/videos`, { method: 'POST', headers }))
  assert.deepEqual([code, message], ['invalid_request', 'The request has no body; a form is needed.'])
})

it('a form, which may be large, is looked at in a turn of its own, and a small JSON body at once', async (t) => {
  /** Whether others that want to work on something large had to wait while a text was estimated. */
  const waited: boolean[] = []
  const estimateTokens = (): number => {
    let isBusy = true
    takeTurn('another', () => {
      isBusy = false
    })
    waited.push(isBusy)
    return 1
  }
  const app = await serveApp((app) => {
    app.use(beginCall({ logger: recordingLogger() }))
    app.post(
      '/v1/videos',
      readRequest({ catalog, operation: videos, estimateTokens }),
      (_req, res) => void res.end('read'),
    )
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
  t.after(() => app.close())
  const form = new FormData()
  for (const [name, value] of Object.entries(ASKED)) form.append(name, value)
  const headers = { 'content-type': 'application/json' }
  for (const [isForm, init] of [
    [false, { body: JSON.stringify(ASKED), headers }],
    [true, { body: form }],
  ] as const) {
    waited.length = 0
    const response = await fetch(`${app.url}/v1/videos`, { method: 'POST', ...init })
    assert.equal(await response.text(), 'read')
    assert.ok(waited.length > 0)
    assert.deepEqual(new Set(waited), new Set([isForm]))
  }
})

it('others go on between the steps of a large body: its check, its texts, their estimates, its facts', async (t) => {
  const steps: string[] = []
  const note = (step: string): void => {
    if (steps.at(-1) !== step) steps.push(step)
  }
  let isOver = false
  const goOn = (): void => {
    note('others')
    if (!isOver) takeTurn('another', goOn)
  }
  t.after(() => {
    isOver = true
  })
  const operation: Operation = {
    ...videos,
    facts: (...given) => {
      note('facts')
      return videos.facts(...given)
    },
  }
  const noted = {
    operation,
    catalog: () => {
      note('check')
      return catalog
    },
    estimateTokens: () => {
      note('estimate')
      return 1
    },
  }
  const app = await serveApp((app) => {
    app.post('/v1/videos', readRequest(noted), (_req, res) => {
      note('read')
      res.end()
    })
    app.use(errorEnvelope())
  })
  t.after(() => app.close())
  goOn()
  const body = JSON.stringify({ ...ASKED, filler: 'x'.repeat(MAX_BYTES_AT_ONCE) })
  const headers = { 'content-type': 'application/json' }
  assert.equal((await fetch(`${app.url}/v1/videos`, { method: 'POST', headers, body })).status, 200)
  const turns = ['check', 'facts', 'estimate', 'facts,check', 'read']
  assert.equal(`${steps}`, `others,${turns.join(',others,')}`)
})
