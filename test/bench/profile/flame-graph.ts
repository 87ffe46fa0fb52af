/** Draws a CPU profile as a flame graph: one SVG that needs nothing else. */
import type { Profiler } from 'node:inspector'
import { roomOf, samplesOf } from './attribution.ts'

const WIDTH = 1600
const ROW = 16
/** Narrower frames are left out. */
const LEAST_PX = 0.5
const CHARACTER_PX = 6.5

interface Box {
  readonly name: string
  readonly room: string
  micros: number
  readonly inner: Map<string, Box>
}

/** @param title a line above the graph. */
export function flameGraph(profile: Profiler.Profile, title: string): string {
  const all: Box = { name: 'all', room: '', micros: 0, inner: new Map() }
  for (const { stack, micros } of samplesOf(profile)) {
    all.micros += micros
    let box = all
    for (let depth = stack.length - 1; depth >= 0; depth--) {
      const { functionName, url, lineNumber } = stack[depth] as (typeof stack)[number]
      const place = url.replace(/^.*\/(node_modules|lib|examples|test)\//, '$1/')
      const name = `${functionName || '(anonymous)'} ${place}${url ? `:${lineNumber + 1}` : ''}`
      const next = box.inner.get(name) ?? {
        name,
        room: roomOf(stack.slice(depth)),
        micros: 0,
        inner: new Map(),
      }
      box.inner.set(name, next)
      next.micros += micros
      box = next
    }
  }
  const drawn: string[] = []
  const depth = draw(all, 0, 0)
  const height = (depth + 3) * ROW
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="monospace" font-size="11">`,
    `<text x="4" y="12">${escaped(title)}</text>`,
    ...drawn,
    '</svg>\n',
  ].join('\n')

  /** Draws a box with what is called in it below, and returns the depth of the lowest. */
  function draw(box: Box, from: number, level: number): number {
    const width = (box.micros / all.micros) * WIDTH
    if (width < LEAST_PX) return level
    const y = (level + 1.5) * ROW
    const percent = ((100 * box.micros) / all.micros).toFixed(1)
    const text = box.name.slice(0, Math.max(0, Math.floor(width / CHARACTER_PX) - 1))
    drawn.push(
      `<g><title>${escaped(`${box.name}\n${box.room}, ${percent} %`)}</title>` +
        `<rect x="${from.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${colourOf(box.room)}"/>` +
        `<text x="${(from + 2).toFixed(1)}" y="${y + 11}">${escaped(text)}</text></g>`,
    )
    let [x, deepest] = [from, level]
    for (const inner of box.inner.values()) {
      deepest = Math.max(deepest, draw(inner, x, level + 1))
      x += (inner.micros / all.micros) * WIDTH
    }
    return deepest
  }
}

/** One colour for each room. */
function colourOf(room: string): string {
  let hue = 0
  for (const character of room) hue = (hue * 31 + character.charCodeAt(0)) % 360
  return `hsl(${hue} 60% 75%)`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
