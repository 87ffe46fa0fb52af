import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Part } from './parts.ts'

/** What one warm plain chat call costs. */
export interface Cost {
  /** Bytes of the heap. */
  readonly bytes: number
  readonly functions: number
  /** That these functions are in. */
  readonly files: number
}

/** What is kept from run to run. */
export interface Figures extends Cost {
  /** The same call through the bare relay. */
  readonly relayBytes: number
  readonly parts: Readonly<Record<Part, Cost>>
}

/** A figure may be so much above the one that is kept. */
const TOLERANCE = 0.05

const FILE = join(import.meta.dirname, 'figures.json')

/** Keeps the figures that later runs are compared with. */
export function keepFigures(figures: Figures): void {
  writeFileSync(FILE, `${JSON.stringify(figures, null, 2)}\n`)
}

/** One line for each figure that has grown beyond the one that is kept by more than a twentieth. */
export function grownFigures(figures: Figures): string[] {
  const kept = JSON.parse(readFileSync(FILE, 'utf8')) as Figures
  return (['bytes', 'functions', 'files'] as const)
    .filter((name) => figures[name] > kept[name] * (1 + TOLERANCE))
    .map((name) => `${name}: ${figures[name]}, and ${kept[name]} before: more than a twentieth more`)
}
