import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyFault } from '../../../../lib/core/operations/body/body-schema.ts'
import {
  FormFile,
  remixOf,
  taskParameters,
  videos,
  videoTasks,
  withoutFlags,
} from '../../../../lib/core/operations/index.ts'
import {
  TOKENS_PER_IMAGE,
  TOKENS_PER_REQUEST,
} from '../../../../lib/core/operations/metering/token-estimate.ts'

describe('a task for a video', () => {
  type Json = Record<string, unknown>

  const NO_BYTES = Buffer.alloc(0)
  const text = (said: string) => ({ type: 'text', text: said })
  const image = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } }

  /** The facts of a task, with a token for each character of its text. */
  const task = (content: Json[], members: Json = {}) =>
    videoTasks.facts({ model: 'film', content, ...members }, NO_BYTES, ({ length }) => length)
  const video = (members: Json) =>
    videos.facts({ model: 'film', prompt: 'A cat', ...members }, NO_BYTES, ({ length }) => length)

  describe('the maximum length of a task’s video', () => {
    const seconds = (members: Json, said = 'A cat') => task([text(said)], members).units

    it('is its duration, up to an hour', () => {
      assert.deepEqual(
        [1, 8, 3600].map((duration) => seconds({ duration })),
        [1, 8, 3600],
      )
      assert.equal(seconds({}, 'A cat --dur 9999'), 3600)
    })

    it('is that of its frames at 24 a second, rounded up to whole seconds, and at least one', () => {
      assert.deepEqual(
        [1, 24, 25, 48, 121].map((frames) => seconds({ frames })),
        [1, 1, 2, 2, 6],
      )
      assert.equal(seconds({}, 'A cat --frames 0'), 1)
      assert.equal(seconds({ frames: 240, duration: 3 }), 10)
    })

    it('is 5 seconds by default, and 12 if the line may choose', () => {
      assert.equal(seconds({}), 5)
      assert.equal(seconds({ duration: null, frames: null }), 5)
      assert.equal(seconds({ duration: -1 }), 12)
      assert.equal(seconds({}, 'A cat --duration 0'), 12)
    })

    it('is that of a flag in the text, unless a member sets it', () => {
      assert.equal(seconds({}, 'A cat --dur 7 --ratio 16:9'), 7)
      assert.equal(seconds({ duration: 3 }, 'A cat --dur 7'), 3)
      assert.equal(seconds({}, 'A cat--dur 7'), 5)
    })
  })

  describe('the parts of a task', () => {
    it('are its texts and its pictures, of which the first is named', () => {
      const facts = task([text('A cat'), image, text('and a dog'), image])
      assert.equal(facts.images, 2)
      assert.deepEqual([...facts.features], ['vision'])
      assert.equal(facts.featureParams.get('vision'), 'content[1]')
      const texts = 'A cat\nand a dog'.length
      assert.equal(facts.estimatedInputTokens, TOKENS_PER_REQUEST + texts + 2 * TOKENS_PER_IMAGE)
    })

    it('is one answer, not streamed, of a model', () => {
      const { model, stream, answers, messages, tools, maxOutputTokens, images, features } = task([
        text('A cat'),
      ])
      assert.deepEqual([model, stream, answers, messages, tools], ['film', false, 1, 0, 0])
      assert.deepEqual([maxOutputTokens, images, features.size], [undefined, 0, 0])
    })

    it('begins its prompt with all texts, line by line, and with no other content', () => {
      const content = [text('A cat'), { ...image, text: 'no prompt' }, text('and a dog')]
      assert.equal(videoTasks.promptPrefix({ content }), 'A cat\nand a dog')
      assert.equal(videoTasks.promptPrefix({ content: [text('x'.repeat(2000))] }), 'x'.repeat(1024))
    })
  })

  describe('the body of a task', () => {
    const judge = (members: Json) =>
      bodyFault(videoTasks.schema, { model: 'm', content: [text('a')], ...members })

    it('has content, a picture with a URL, and a length within an hour', () => {
      const fitting = [
        { duration: -1 },
        { duration: 3600 },
        { frames: 1 },
        { frames: 100_000 },
        { content: [image] },
      ]
      for (const members of fitting) assert.equal(judge(members), undefined, JSON.stringify(members))
      const unfit = [
        { content: [] },
        { content: [{ type: 'image_url', image_url: { url: '' } }] },
        { duration: -2 },
        { duration: 3601 },
        { duration: 1.5 },
        { frames: 0 },
        { frames: 100_001 },
        { seed: 0.5 },
        { model: '' },
      ]
      for (const members of unfit) assert.ok(judge(members), JSON.stringify(members))
    })
  })

  describe('a video request', () => {
    it('has its given length, in either spelling, or 4 seconds', () => {
      assert.deepEqual(
        [{ seconds: 8 }, { seconds: '12' }, {}, { seconds: null }].map((members) => video(members).units),
        [8, 12, 4, 4],
      )
    })

    it('counts its source as one picture', () => {
      const { images, features, featureParams, estimatedInputTokens } = video({
        input_reference: { file_id: 'f' },
      })
      assert.deepEqual([images, [...features]], [1, ['vision']])
      assert.equal(featureParams.get('vision'), 'input_reference')
      assert.equal(estimatedInputTokens, TOKENS_PER_REQUEST + 'A cat'.length + TOKENS_PER_IMAGE)
      const plain = video({})
      assert.deepEqual([plain.images, plain.features.size], [0, 0])
      assert.equal(plain.estimatedInputTokens, TOKENS_PER_REQUEST + 'A cat'.length)
    })

    it('begins its prompt with the prompt', () => {
      assert.equal(videos.promptPrefix({ prompt: 'A cat' }), 'A cat')
      assert.equal(videos.promptPrefix({ prompt: 'x'.repeat(2000) }).length, 1024)
    })
  })
})

describe('a request for a video', () => {
  type Json = Record<string, unknown>

  describe('the parameters of a task', () => {
    const FLAGS: Record<string, string> = {
      resolution: 'resolution',
      rs: 'resolution',
      ratio: 'ratio',
      rt: 'ratio',
      duration: 'duration',
      dur: 'duration',
      frames: 'frames',
      framespersecond: 'framespersecond',
      fps: 'framespersecond',
      seed: 'seed',
      camerafixed: 'camera_fixed',
      cf: 'camera_fixed',
      watermark: 'watermark',
      wm: 'watermark',
    }
    const given = (texts: string[], body: Json = {}) => [...taskParameters(body, texts).given]

    for (const [flag, name] of Object.entries(FLAGS))
      it(`are given by a flag, in any case, unless a member gives them: --${flag}`, () => {
        for (const written of [flag, flag.toUpperCase()])
          assert.deepEqual(given([`--${written} 7`]), [[name, 7]])
        assert.deepEqual(given([`--${flag} 7`], { [name]: 'a' }), [[name, 'a']])
        assert.deepEqual(given([], { [name]: false }), [[name, false]])
        assert.deepEqual(given([`--${flag} 7`], { [name]: null }), [[name, 7]])
      })

    it('are numbers, booleans, or words', () => {
      const value = (text: string) => taskParameters({}, [`--seed ${text}`]).given.get('seed')
      assert.deepEqual(
        ['true', 'false', 'TRUE', '0', '-1', '1234567890', '12345678901', '1.5', '16:9', '5s', '-'].map(
          value,
        ),
        [true, false, 'TRUE', 0, -1, 1_234_567_890, '12345678901', '1.5', '16:9', '5s', '-'],
      )
    })

    it('are removed from the text, and the last of each counts', () => {
      const { prompt, given } = taskParameters({}, ['--dur 5 A cat --ratio 16:9 ', 'and a dog --dur  8'])
      assert.equal(prompt, 'A cat  \nand a dog')
      assert.deepEqual(
        [...given],
        [
          ['duration', 8],
          ['ratio', '16:9'],
        ],
      )
    })

    it('are not read from other words', () => {
      for (const text of ['A cat--dur 7', '-dur 7', '--duration', '--unknown 7', '--durs 7', 'x--fps 7'])
        assert.deepEqual(taskParameters({}, [text]), { prompt: text, given: new Map() }, text)
    })

    it('are not read from an escaped text', () => {
      const text = 'A cat --dur 7, --RATIO 16:9 --unknown 1'
      const escaped = withoutFlags(text)
      assert.equal(escaped, 'A cat —dur 7, —RATIO 16:9 --unknown 1')
      assert.deepEqual(given([escaped]), [])
    })
  })

  describe('the body of a video request', () => {
    const FILE = new FormFile('a.png', 'image/png', Buffer.of(1))
    const rows: [member: string, fit: unknown[], unfit: unknown[]][] = [
      ['model', ['m'], ['', undefined]],
      ['prompt', ['p'], ['', undefined]],
      ['seconds', [1, 3600, '1', '999', null], [0, 3601, 1.5, '0', '01', '1000', '', '4s', ' 4', '1.5']],
      [
        'size',
        ['10x10', '99999x99999', '1280x720', null],
        ['1x10', '10x1', '100000x10', '10x100000', '010x10', '10x010', '10X10', ' 10x10', '10x10 ', '', 1],
      ],
      [
        'input_reference',
        [FILE, { image_url: 'https://a.test' }, { file_id: 'f' }, { file_id: 'f', x: 1 }, null],
        ['f', {}, { file_id: '' }, { image_url: '' }, { file_id: 'f', image_url: 'u' }, [FILE], 7],
      ],
      ['provider', [{}, null], [{ unknown: 1 }]],
    ]
    for (const [member, fit, unfit] of rows)
      it(`has a ${member} within its bounds`, () => {
        const accepts = (value: unknown) =>
          !bodyFault(videos.schema, { model: 'm', prompt: 'p', [member]: value })
        for (const value of fit) assert.equal(accepts(value), true, JSON.stringify(value))
        for (const value of unfit) assert.equal(accepts(value), false, JSON.stringify(value))
      })
  })

  describe('a remix', () => {
    const remix = remixOf({ id: 'video_1', model: 'film', seconds: 8 })

    it('has the model and the length of its source', () => {
      const facts = remix.facts({ prompt: 'In red' }, Buffer.alloc(0), ({ length }) => length)
      const { model, units, images, estimatedInputTokens, answers, stream, messages, tools } = facts
      assert.deepEqual([model, units, images, estimatedInputTokens], ['film', 8, 0, 3 + 6])
      assert.deepEqual([answers, stream, messages, tools, facts.maxOutputTokens], [1, false, 0, 0, undefined])
    })

    it('has a prompt, and names no model', () => {
      assert.equal(remix.schema.safeParse({ prompt: 'In red', x: 1 }).success, true)
      for (const body of [{}, { prompt: '' }, { prompt: 7 }])
        assert.equal(remix.schema.safeParse(body).success, false)
    })
  })

  describe('the answer to a video request', () => {
    for (const { name, readAnswer } of [videos, videoTasks, remixOf({ id: 'v', model: 'm', seconds: 1 })])
      it(`contains the task, and costs nothing yet: ${name}`, () => {
        const { substance, usage, estimateOutput } = readAnswer({ id: 'task-1' })
        assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
        for (const json of [null, 'id', {}, { id: 7 }, [], undefined])
          assert.throws(() => readAnswer(json), /^SyntaxError: the answer to a create names no task$/)
      })
  })
})
