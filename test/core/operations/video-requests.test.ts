import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  FormFile,
  remixOf,
  taskParameters,
  videos,
  videoTasks,
  withoutFlags,
} from '../../../lib/core/operations/index.ts'

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
    it(`are told by a flag, in any case, unless a member tells them: --${flag}`, () => {
      for (const written of [flag, flag.toUpperCase()])
        assert.deepEqual(given([`--${written} 7`]), [[name, 7]])
      assert.deepEqual(given([`--${flag} 7`], { [name]: 'a' }), [[name, 'a']])
      assert.deepEqual(given([], { [name]: false }), [[name, false]])
      assert.deepEqual(given([`--${flag} 7`], { [name]: null }), [[name, 7]])
    })

  it('are numbers, truth, or words', () => {
    const value = (text: string) => taskParameters({}, [`--seed ${text}`]).given.get('seed')
    assert.deepEqual(
      ['true', 'false', 'TRUE', '0', '-1', '1234567890', '12345678901', '1.5', '16:9', '5s', '-'].map(value),
      [true, false, 'TRUE', 0, -1, 1_234_567_890, '12345678901', '1.5', '16:9', '5s', '-'],
    )
  })

  it('are taken out of the text, the last of each counts', () => {
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

  it('are no other words', () => {
    for (const text of ['A cat--dur 7', '-dur 7', '--duration', '--unknown 7', '--durs 7', 'x--fps 7'])
      assert.deepEqual(taskParameters({}, [text]), { prompt: text, given: new Map() }, text)
  })

  it('are not read out of a text that is escaped', () => {
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
        videos.schema.safeParse({ model: 'm', prompt: 'p', [member]: value }).success
      for (const value of fit) assert.equal(accepts(value), true, JSON.stringify(value))
      for (const value of unfit) assert.equal(accepts(value), false, JSON.stringify(value))
    })
})

describe('a remix', () => {
  const remix = remixOf({ id: 'video_1', model: 'film', seconds: 8 })

  it('is of the model and the length of its source', () => {
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
    it(`names what is being made, and costs nothing yet: ${name}`, () => {
      const { substance, usage, estimateOutput } = readAnswer({ id: 'task-1' })
      assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
      for (const json of [null, 'id', {}, { id: 7 }, [], undefined])
        assert.throws(() => readAnswer(json), /^SyntaxError: the answer to a create names no task$/)
    })
})
