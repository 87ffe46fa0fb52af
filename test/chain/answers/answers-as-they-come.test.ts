import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Content, isFilled, SHAPES, type Shape, type StopReason } from './content-forms.ts'
import { DIRECTIONS, type Direction } from './directions.ts'
import { dataIn, FALLBACK, type Played, PRICE, sceneOf } from './scene.ts'

/** The expected fate of an answer: it is delivered, or stopped by moderation, or the next line is tried. */
type Fate = 'delivered' | 'filtered' | 'next line'

function fateOf({ line }: Direction, content: Content, reason: StopReason): Fate {
  if (isFilled(content)) return 'delivered'
  if (reason === line.moderated && reason !== null) return 'filtered'
  return line.plainReasons.includes(reason) ? 'next line' : 'delivered'
}

/** The contents on which the meaning of a reason depends. */
const TELLING = ['text', 'nothing', 'a tool call', 'a refusal']

/** The reasons on which the fate of a content depends. */
const deciding = ({ plainReasons: [plain = null], moderated }: Direction['line']): StopReason[] =>
  moderated === undefined ? [plain] : [plain, moderated]

/** The contents that are played with a reason: all with those on which the fate depends, and the telling ones with the others. */
function formsFor({ line, forms }: Direction, reason: StopReason) {
  const isTold = deciding(line).includes(reason)
  return Object.entries(forms).filter(([name]) => isTold || TELLING.includes(name))
}

for (const direction of DIRECTIONS) {
  const { line } = direction
  const reasons = [...line.plainReasons, ...line.reasons, ...(line.moderated ? [line.moderated] : [])]
  for (const shape of [undefined, ...SHAPES]) {
    const how = shape ? `streamed, all in the ${shape}` : 'plain'
    describe(`answers as they come: ${direction.name}, ${how}`, async () => {
      // Of its own, because the retries of a model are bounded.
      const scene = await sceneOf(direction)
      // Which event brings the content is no matter of the other reasons.
      for (const reason of shape === undefined || shape === 'deltas' ? reasons : deciding(line)) {
        it(`ended by ${reason}`, async () => {
          for (const [name, content] of formsFor(direction, reason)) {
            const played = await scene.play({ content, reason, shape })
            const fate = fateOf(direction, content, reason)
            assertFate(played, fate, `${name}: ${played.got.text}`)
            if (fate === 'delivered') assertDelivered(direction, content, reason, shape, played, name)
            else if (fate === 'next line') assert.ok(played.got.text.includes(FALLBACK), name)
          }
        })
      }
    })
  }
}

function assertFate({ got, entry }: Played, fate: Fate, about: string): void {
  const isFiltered = fate === 'filtered'
  assert.equal(got.status, isFiltered ? 400 : 200, about)
  assert.equal(entry.outcome, isFiltered ? 'failed' : 'completed', about)
  assert.equal(entry.error_code, isFiltered ? 'content_filtered' : null, about)
  assert.deepEqual(
    entry.routing?.attempts.map(({ line, outcome }) => [line, outcome]),
    fate === 'next line'
      ? [
          ['line-0', 'empty_completion'],
          ['line-1', 'completed'],
        ]
      : [['line-0', isFiltered ? 'content_filtered' : 'completed']],
    about,
  )
  assert.equal(entry.billing?.charged ?? null, isFiltered ? null : PRICE, about)
  assert.equal(entry.usage?.source, isFiltered ? undefined : 'measured', about)
}

function assertDelivered(
  { caller, finish }: Direction,
  content: Content,
  reason: StopReason,
  shape: Shape | undefined,
  { got, sent }: Played,
  name: string,
): void {
  if (!finish) {
    assert.deepEqual(shape ? dataIn(got.text) : [got.text], sent, name)
    return
  }
  const { text = '', moreText = '', reasoning = '', refusal = '', calls = [] } = content
  const ends = finish(reason, content)
  const said = { text: text + moreText, refusal }
  assert.deepEqual(
    caller.view(got.text, shape !== undefined),
    {
      ...(caller.refusalIs === 'text' ? refusedBy(ends, said) : said),
      reasoning,
      calls: calls.map(({ name: tool, input = {} }) => [tool, input]),
      finish: ends,
    },
    name,
  )
}

/** Where a refusal is the text of an answer, its stop reason says that it is one. */
function refusedBy(ends: string, { text, refusal }: { text: string; refusal: string }) {
  return ends === 'refusal' ? { text: '', refusal: text + refusal } : { text: text + refusal, refusal: '' }
}
