import { z } from 'zod'
import { budgetChangeSchema, newBudgetSchema } from '../admin/budgets/budget-schemas.ts'
import { accountPageQuery } from '../admin/page-query.ts'
import { deleted, listOf } from './answer-schemas.ts'
import { adminEndpoint, answersWith, type Endpoint } from './endpoint.ts'

const budget = z.strictObject({
  id: z.string(),
  object: z.literal('budget'),
  scope: z.strictObject({
    account: z.string(),
    key: z.string().nullable(),
    user: z.string().nullable(),
    tag: z.string().nullable(),
  }),
  amount: z.string(),
  period: newBudgetSchema.shape.period,
  timezone: z.string(),
  hard: z.boolean(),
  soft: z.array(z.number()),
  spent: z.string(),
  left: z.string(),
  period_start: z.iso.datetime().nullable(),
  resets_at: z.iso.datetime().nullable(),
  created_at: z.iso.datetime(),
})

export const BUDGET_ENDPOINTS: readonly Endpoint[] = [
  adminEndpoint('get', '/admin/budgets', 'listBudgets', {
    summary: 'Budgets, by their ids',
    query: accountPageQuery,
    answers: answersWith('BudgetList', listOf(budget)),
  }),
  adminEndpoint('post', '/admin/budgets', 'createBudget', {
    summary: 'Creates a budget; it counts from now on',
    body: newBudgetSchema,
    answers: answersWith('Budget', budget, 201),
  }),
  adminEndpoint('get', '/admin/budgets/{id}', 'getBudget', {
    summary: 'One budget, with what is spent and left in the running period',
    answers: answersWith('Budget', budget),
  }),
  adminEndpoint('patch', '/admin/budgets/{id}', 'changeBudget', {
    summary: 'Changes the amount of a budget, whether it refuses, and what is told',
    body: budgetChangeSchema,
    answers: answersWith('Budget', budget),
  }),
  adminEndpoint('delete', '/admin/budgets/{id}', 'deleteBudget', {
    summary: 'Deletes a budget',
    answers: answersWith('DeletedBudget', deleted('budget')),
  }),
]
