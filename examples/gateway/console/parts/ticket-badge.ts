import type { Ticket } from '../tickets.ts'
import { badge } from './status.ts'

const TONES = { open: 'warn', answered: 'good', closed: 'off' } as const

export function ticketBadge({ status }: Ticket): HTMLElement {
  return badge(TONES[status], status)
}
