import type { Account } from '../accounts.ts'
import type { Child } from '../element.ts'
import { count, moment } from '../format.ts'
import { facts } from './facts.ts'
import { changesIn, type Filled, field, form, namesIn, numberIn } from './form.ts'

/** Shows the settings of an account to users who may not change them. */
export function accountFacts(account: Account): HTMLElement {
  const { limits, regions, line_regions: lineRegions } = account
  const rows: [string, Child][] = [
    ['Requests a minute', limitText(limits.rpm)],
    ['Tokens a minute', limitText(limits.tpm)],
    ['Calls at a time', limitText(limits.concurrency ?? null)],
  ]
  if (regions !== undefined) rows.push(['Regions', regions?.join(', ') ?? 'all'])
  if (lineRegions !== undefined) rows.push(['Regions of its lines', lineRegions?.join(', ') ?? 'all'])
  if (account.name !== undefined) rows.unshift(['Name', account.name])
  if (account.created_at !== undefined) rows.push(['Created', moment(account.created_at)])
  return facts(rows)
}

function limitText(value: number | null): string {
  return value === null ? 'no limit' : count(value)
}

/** Creates the form that changes the settings of an account; an empty field removes a limit or a restriction. */
export function accountForm(account: Account, save: (settings: object) => Promise<Child>): HTMLElement {
  const { limits, name, regions, line_regions: lineRegions } = account
  const number = { inputmode: 'numeric', pattern: '[0-9]*', title: 'A whole number', size: 8 }
  return form({
    label: 'Settings of the account',
    submit: 'Save',
    fields: [
      field({ name: 'name', label: 'Name', attributes: { value: name } }),
      field({ name: 'rpm', label: 'Requests a minute', attributes: { value: limits.rpm, ...number } }),
      field({ name: 'tpm', label: 'Tokens a minute', attributes: { value: limits.tpm, ...number } }),
      field({
        name: 'concurrency',
        label: 'Calls at a time',
        attributes: { value: limits.concurrency, ...number },
      }),
      field({
        name: 'regions',
        label: 'Regions',
        hint: 'Regions of gateways that may serve the account.',
        attributes: { value: regions?.join(' ') },
      }),
      field({
        name: 'line_regions',
        label: 'Regions of its lines',
        attributes: { value: lineRegions?.join(' ') },
      }),
    ],
    act: (filled, before) => save(changesIn(settingsIn(filled), settingsIn(before))),
  })
}

function settingsIn({ name, rpm, tpm, concurrency, regions, line_regions }: Filled): object {
  return {
    name: name || null,
    limits: { rpm: numberIn(rpm), tpm: numberIn(tpm), concurrency: numberIn(concurrency) },
    regions: namesIn(regions),
    line_regions: namesIn(line_regions),
  }
}
